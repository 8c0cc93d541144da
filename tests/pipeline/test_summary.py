from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from components import predictions
from pipeline import runs, summary
from pipeline.progress import Progress
from pipeline.workspace import Workspace
from serving.saved_model import Answer
from tests import fake_models, fake_tasks


def _write(folder, name, content) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return str(folder)


def _done(node, state="done", properties=None, **outputs):
    return {
        "kind": "node",
        "node": node,
        "state": state,
        "seconds": 1.0,
        "outputs": outputs,
        "properties": properties or {},
    }


@pytest.fixture
def events(tmp_path):
    """The events of a run that went well, with its artifacts."""
    contract = fake_models.Reverser().contract()
    rows = [predictions.Row({"source": f"source {i}"}, [f"answer {i}"]) for i in range(9)]
    texts = [f"answer {i if i != 4 else 'x'}" for i in range(9)]
    answers = [
        Answer({"translation": text, "score": -0.5, "source_length": 1}, contract) for text in texts
    ]
    predicted = tmp_path / "predictions"
    predicted.mkdir()
    predictions.write(predicted / predictions.CANDIDATE, fake_models.FEATURES, rows, answers)
    predictions.write_summary(predicted, {"contract": contract})
    bleu = {"name": "bleu", "label": "BLEU", "value": 33.127, "signature": "nrefs:1", "scale": 100}
    exact = {"name": "exact_match", "label": "exact match", "value": 0.98125, "scale": 1}
    training = {"parameters": 1234567, "epochs": 7, "steps": 900, "seconds": 125.0, "history": [1]}
    evaluation = _write(
        tmp_path / "e", "metrics.json", {"metrics": {"bleu": bleu, "exact_match": exact}}
    )
    decision = {"blessed": True, "sentence": "Blessed: BLEU 33.1 is over the floor.", "reasons": []}
    pushed = {
        "pushed": 1,
        "pushed_version": "3",
        "pushed_destination": f"{tmp_path}/registry/tiny/3",
    }
    corpus = _write(tmp_path / "c", "corpus.json", {"rows": {"train": 29000, "test": 1000}})
    return [
        {"kind": "warning", "node": "CorpusGen", "text": "2 lines were skipped"},
        _done("CorpusGen", findings=corpus),
        _done("Trainer", model="/m", model_run=_write(tmp_path / "t", "training.json", training)),
        _done("Predictor", predictions=str(predicted)),
        _done(
            "Evaluator",
            evaluation=evaluation,
            blessing=_write(tmp_path / "b", "blessing.json", decision),
        ),
        _done("Pusher", properties={"pushed_model": pushed}, pushed_model="/p"),
        _done("Reporter", report=_write(tmp_path / "r", "report.html", "<!doctype html>")),
    ]


def _run(tmp_path, events, status=runs.SUCCEEDED):
    run = runs.create(Workspace(tmp_path).pipeline("tiny"))
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    run.update(status=status, seconds=200.0)
    state = Progress([])
    for event in events:
        state.apply(event)
    return run, state


def test_everything_is_read_from_the_artifacts(tmp_path, events):
    found = summary.summarise(*_run(tmp_path, events), "configs/tiny.yaml")
    assert found["data"] == {
        "rows": {"train": 29000, "test": 1000},
        "findings": ["2 lines were skipped"],
    }
    assert found["model"]["parameters"] == 1234567
    assert [score["name"] for score in found["scores"]] == ["bleu", "exact_match"]
    assert found["blessing"]["blessed"] is True
    assert found["pushed"] == {"version": "3", "path": f"{tmp_path}/registry/tiny/3"}
    assert found["report"] == f"{tmp_path}/r/report.html"
    sources = [example["inputs"]["source"] for example in found["examples"]]
    assert sources == ["source 1", "source 4", "source 7"]
    assert found["examples"][1]["hypothesis"] == "answer x"
    assert found["examples"][1]["references"] == ["answer 4"]
    assert found["next"][0] == 'regard predict tiny "source 1"'
    assert any(command.startswith("tensorboard --logdir") for command in found["next"])
    json.dumps(found)


def test_table_shows_scores_blessing_examples_and_commands(tmp_path, events):
    console = Console(file=io.StringIO(), width=100)
    summary.show(summary.summarise(*_run(tmp_path, events)), console)
    text = console.file.getvalue()
    for part in (
        "29,000 train, 1,000 test",
        "2 lines were skipped",
        "1,234,567 parameters",
        "trained in 2:05",
        "BLEU 33.13  nrefs:1",
        "exact match 0.9812",
        "Blessed: BLEU 33.1",
        f"version 3: {tmp_path}/registry/tiny/3",
        f"report    {tmp_path}/r/report.html",
        "  → answer x\n    reference: answer 4",
        'next  regard predict tiny "source 1"',
    ):
        assert part in text


def test_the_spans_are_told_without_their_files(tmp_path, events):
    old = {"span": 6, "name": "6", "version": None, "files": {"train": ["6.tsv"]}}
    old |= {"rows": {"train": 20}, "replayed": True, "available": 90, "fingerprint": "f"}
    new = {"span": 7, "name": "7", "version": 1, "files": {}, "rows": {"train": 80}}
    corpus = {"rows": {"train": 100}, "spans": [old, new]}
    (tmp_path / "c" / "corpus.json").write_text(json.dumps(corpus))
    found = summary.summarise(*_run(tmp_path, events))
    six, seven = found["data"]["spans"]
    assert (six["replayed"], six["available"], "files" in six) == (True, 90, False)
    assert seven == {"span": 7, "name": "7", "version": 1, "rows": {"train": 80}}
    console = Console(file=io.StringIO(), width=100)
    summary.show(found, console)
    assert "spans     7, replaying 6\n" in console.file.getvalue()


def test_a_baseline_stands_beside_the_score(tmp_path, events):
    found = next(event for event in events if event.get("node") == "Evaluator")
    path = Path(found["outputs"]["evaluation"]) / "metrics.json"
    content = json.loads(path.read_text())
    values = {"bleu": {"value": 12.3456}, "exact_match": {"value": 0.25}}
    path.write_text(json.dumps({**content, "baseline": {"label": "lead-1", "metrics": values}}))
    console = Console(file=io.StringIO(), width=100)
    summary.show(summary.summarise(*_run(tmp_path, events)), console)
    assert "BLEU 33.13 (lead-1: 12.35)  nrefs:1" in console.file.getvalue()
    assert "exact match 0.9812 (lead-1: 0.2500)" in console.file.getvalue()


def test_a_baseline_without_a_value_has_none_in_json(tmp_path, events):
    found = next(event for event in events if event.get("node") == "Evaluator")
    path = Path(found["outputs"]["evaluation"]) / "metrics.json"
    content = json.loads(path.read_text())
    values = {"bleu": {"value": float("nan")}, "exact_match": {"value": float("inf")}}
    path.write_text(json.dumps({**content, "baseline": {"label": "lead-1", "metrics": values}}))
    told = summary.summarise(*_run(tmp_path, events))
    assert [score["baseline"]["value"] for score in told["scores"]] == [None, None]
    json.dumps(told, allow_nan=False)


def test_cached_nodes_have_the_warnings_of_the_run_that_made_them(tmp_path, events):
    _run(tmp_path, events)
    again = [{**event, "state": "cached"} for event in events if event["kind"] == "node"]
    found = summary.summarise(*_run(tmp_path, again))
    assert found["data"]["findings"] == ["2 lines were skipped"]


def test_run_that_failed_early_has_little_to_tell(tmp_path):
    events = [{"kind": "node", "node": "CorpusGen", "state": "failed", "error": "e"}]
    found = summary.summarise(*_run(tmp_path, events, runs.FAILED), "a b.yaml")
    assert "scores" not in found
    assert found["next"] == ["regard run 'a b.yaml'"]


def test_missing_and_broken_artifacts_do_not_break_the_summary(tmp_path, events):
    (tmp_path / "e" / "metrics.json").write_text("{")
    (tmp_path / "predictions" / "candidate.parquet").write_bytes(b"")
    found = summary.summarise(*_run(tmp_path, events))
    assert "scores" not in found
    assert "examples" not in found
    assert found["next"][0] == 'regard predict tiny "..."'


def test_a_metric_that_is_undefined_is_said_so(tmp_path, events):
    nan = {"name": "pearson", "label": "Pearson", "value": float("nan"), "scale": 1}
    metrics = {"pearson": {**nan, "signature": "nrefs:1|undefined:why"}}
    _write(tmp_path / "e", "metrics.json", {"metrics": metrics})
    found = summary.summarise(*_run(tmp_path, events))
    assert json.loads(json.dumps(found, allow_nan=False))["scores"][0]["value"] is None
    console = Console(file=io.StringIO(), width=100)
    summary.show(found, console)
    assert "Pearson undefined  nrefs:1|undefined:why" in console.file.getvalue()


def test_an_image_is_named_where_it_lies(tmp_path, events):
    contract = fake_tasks.Namer().contract()
    rows = [predictions.Row({"image": b""}, ["a dog", "dogs"], {}, {"image": "d/a.png"})]
    answers = [Answer({"caption": "a cat", "score": -1.0}, contract)]
    folder = tmp_path / "predictions"
    predictions.write(folder / predictions.CANDIDATE, fake_tasks.CAPTIONING, rows, answers)
    predictions.write_summary(folder, {"contract": contract})
    run, state = _run(tmp_path, events)
    run.config.write_text("data: {root: /data/flickr, images: pictures}\n")
    found = summary.summarise(run, state)
    assert found["next"][0] == 'regard predict tiny "/data/flickr/pictures/d/a.png"'
    console = Console(file=io.StringIO(), width=100)
    summary.show(found, console)
    wanted = "a.png\n  → a cat\n    reference: a dog\n    reference: dogs\n"
    assert wanted in console.file.getvalue()


def test_another_registry_is_named_in_the_next_command(tmp_path, events):
    events[-2]["properties"]["pushed_model"]["pushed_destination"] = "/srv/all models/tiny/3"
    found = summary.summarise(*_run(tmp_path, events))
    assert found["next"][0] == "regard predict --registry '/srv/all models' tiny \"source 1\""


def test_log_lines_are_neither_wrapped_nor_padded(tmp_path, events):
    console = Console(file=io.StringIO(), width=30)
    summary.show(summary.summarise(*_run(tmp_path, events)), console)
    lines = console.file.getvalue().splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert any("1,234,567 parameters" in line and "900 steps" in line for line in lines)


def test_why_a_good_model_was_not_pushed_is_told(tmp_path, events):
    text = "Not pushed. It is the model of tiny@2, which production was rolled back from."
    folder = _write(tmp_path / "p", "pushed.json", {"pushed": False, "text": text})
    kept = [event for event in events if event.get("node") != "Pusher"]
    kept.append(_done("Pusher", pushed_model=folder))
    found = summary.summarise(*_run(tmp_path, kept, runs.NOT_BLESSED))
    assert "pushed" not in found
    assert found["not_pushed"] == text.removeprefix("Not pushed. ")
    console = Console(file=io.StringIO(), width=100)
    summary.show(found, console)
    assert f"not pushed  {found['not_pushed']}\n" in console.file.getvalue()
