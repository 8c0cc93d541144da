import io
import json

import pytest
from rich.console import Console

from regard.components.common import prediction_table, run_record
from regard.components.common.run_progress import Progress
from regard.components.common.run_record import RunRecord
from regard.pipeline.cli.rendering.run_summary import print_summary
from regard.pipeline.runs import store
from regard.pipeline.runs.summary import summarize
from regard.pipeline.workspace import Workspace
from regard.serving.saved_model import Prediction
from tests import fake_models, fake_tasks


def _write(folder, name, content) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return str(folder)


def node_event(node, state="done", properties=None, **outputs):
    facts = {"state": state, "seconds": 1.0, "properties": properties or {}}
    return {"kind": "node", "node": node, "outputs": outputs, **facts}


@pytest.fixture
def events(tmp_path):
    """The events of a run that went well, with its artifacts."""
    contract = fake_models.Reverser().contract()
    rows = [prediction_table.Row({"source": f"source {i}"}, [f"answer {i}"]) for i in range(9)]
    texts = [f"answer {i if i != 4 else 'x'}" for i in range(9)]
    answers = [
        Prediction({"translation": text, "score": -0.5, "source_length": 1}, contract)
        for text in texts
    ]
    predicted = tmp_path / "predictions"
    predicted.mkdir()
    prediction_table.write(
        predicted / prediction_table.CANDIDATE, fake_models.FEATURES, rows, answers
    )
    prediction_table.write_summary(predicted, {"contract": contract})
    bleu = {"name": "bleu", "label": "BLEU", "value": 33.127, "signature": "nrefs:1", "scale": 100}
    exact = {"name": "exact_match", "label": "exact match", "value": 0.98125, "signature": ""}
    metrics = {"bleu": bleu, "exact_match": {**exact, "scale": 1}}
    training = {"parameters": 1234567, "epochs": 7, "steps": 900, "seconds": 125.0, "history": [1]}
    evaluation = _write(tmp_path / "e", "metrics.json", {"rows": 9, "metrics": metrics})
    sentence = "Passed: BLEU 33.1 is above the threshold of 30.0."
    decision = {"blessed": True, "sentence": sentence, "verdicts": []}
    destination = f"{tmp_path}/registry/tiny/3"
    pushed = {"pushed": 1, "pushed_version": "3", "pushed_destination": destination}
    corpus = _write(tmp_path / "c", "corpus.json", {"rows": {"train": 29000, "test": 1000}})
    return [
        {"kind": "warning", "node": "CorpusGen", "text": "2 lines were skipped"},
        node_event("CorpusGen", findings=corpus),
        node_event(
            "Trainer", model="/m", model_run=_write(tmp_path / "t", "training.json", training)
        ),
        node_event("Predictor", predictions=str(predicted)),
        node_event(
            "Evaluator",
            evaluation=evaluation,
            blessing=_write(tmp_path / "b", "blessing.json", decision),
        ),
        node_event("Pusher", properties={"pushed_model": pushed}, pushed_model="/p"),
        node_event("Reporter", report=_write(tmp_path / "r", "report.html", "<!doctype html>")),
    ]


def printed(summary, width=100):
    console = Console(file=io.StringIO(), width=width)
    print_summary(summary, console)
    return console.file.getvalue()


def _run(tmp_path, events, status=run_record.SUCCEEDED):
    run = store.create(Workspace(tmp_path).pipeline("tiny"))
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    run.update(RunRecord(status=status, seconds=200.0))
    state = Progress([])
    for event in events:
        state.apply(event)
    return run, state


def test_summary_of_the_artifacts(tmp_path, events):
    summary = summarize(*_run(tmp_path, events), "regard run configs/tiny.yaml")
    assert summary["data"] == {
        "rows": {"train": 29000, "test": 1000},
        "findings": ["2 lines were skipped"],
    }
    assert summary["model"]["parameters"] == 1234567
    assert [score["name"] for score in summary["scores"]] == ["bleu", "exact_match"]
    assert summary["blessing"]["blessed"] is True
    assert summary["pushed"] == {"version": "3", "path": f"{tmp_path}/registry/tiny/3"}
    assert summary["report"] == f"{tmp_path}/r/report.html"
    sources = [example["inputs"]["source"] for example in summary["examples"]]
    assert sources == ["source 1", "source 4", "source 7"]
    assert summary["examples"][1]["hypothesis"] == "answer x"
    assert summary["examples"][1]["references"] == ["answer 4"]
    assert commands(summary) == [
        'regard predict tiny "source 1"',
        "regard serve tiny --open",
        "regard report tiny --open",
    ]
    json.dumps(summary)


def commands(summary):
    return [item["command"] for item in summary["next"]]


def test_print_summary(tmp_path, events):
    text = printed(summarize(*_run(tmp_path, events)))
    for part in (
        "29,000 train, 1,000 test",
        "2 lines were skipped",
        "1,234,567 parameters",
        "trained in 2:05",
        "BLEU 33.13  nrefs:1",
        "exact match 0.9812",
        "Passed: BLEU 33.1",
        f"version 3: {tmp_path}/registry/tiny/3",
        f"report     {tmp_path}/r/report.html",
        "  → answer x\n    reference: answer 4",
        'use the model:\n        regard predict tiny "source 1"\n',
    ):
        assert part in text


def test_each_command_has_a_line_of_its_own(tmp_path, events):
    """A comment after it would be an argument in zsh."""
    summary = summarize(*_run(tmp_path, events))
    commands = [item["command"] for item in summary["next"]]
    commands.append(f"regard run {'folder/' * 20}tiny.yaml --publish-anyway")
    summary["next"].append({"command": commands[-1], "about": "publish the model as it is"})
    lines = printed(summary).splitlines()
    assert [line.strip() for line in lines if "regard " in line] == commands


def test_spans_without_their_files(tmp_path, events):
    old = {"span": 6, "name": "6", "version": None, "files": {"train": ["6.tsv"]}}
    old |= {"rows": {"train": 20}, "replayed": True, "available": 90, "fingerprint": "f"}
    new = {"span": 7, "name": "7", "version": 1, "files": {}, "rows": {"train": 80}}
    corpus = {"rows": {"train": 100}, "spans": [old, new]}
    (tmp_path / "c" / "corpus.json").write_text(json.dumps(corpus))
    summary = summarize(*_run(tmp_path, events))
    six, seven = summary["data"]["spans"]
    assert (six["replayed"], six["available"], "files" in six) == (True, 90, False)
    assert seven == {"span": 7, "name": "7", "version": 1, "rows": {"train": 80}}
    assert "spans      7, replaying 6\n" in printed(summary)


def add_baseline(folder, **values):
    path = folder / "e" / "metrics.json"
    content = json.loads(path.read_text())
    metrics = {name: {**content["metrics"][name], "value": value} for name, value in values.items()}
    content["baselines"] = [
        {"name": "lead_1", "label": "lead-1", "metrics": metrics},
        {"name": "copy", "label": "copy", "metrics": {}},
    ]
    path.write_text(json.dumps(content))


def test_baseline_follows_the_score(tmp_path, events):
    add_baseline(tmp_path, bleu=12.3456, exact_match=0.25)
    text = printed(summarize(*_run(tmp_path, events)))
    assert "BLEU 33.13 (lead-1: 12.35)  nrefs:1" in text
    assert "exact match 0.9812 (lead-1: 0.2500)" in text


def test_undefined_baseline_is_null_in_json(tmp_path, events):
    add_baseline(tmp_path, bleu=float("nan"), exact_match=float("inf"))
    summary = summarize(*_run(tmp_path, events))
    assert [score["baselines"][0]["value"] for score in summary["scores"]] == [None, None]
    json.dumps(summary, allow_nan=False)


def test_cached_nodes_have_the_warnings_of_the_original_run(tmp_path, events):
    _run(tmp_path, events)
    again = [{**event, "state": "cached"} for event in events if event["kind"] == "node"]
    summary = summarize(*_run(tmp_path, again))
    assert summary["data"]["findings"] == ["2 lines were skipped"]


def test_summary_of_a_run_that_failed_early(tmp_path):
    events = [{"kind": "node", "node": "CorpusGen", "state": "failed", "error": "e"}]
    summary = summarize(*_run(tmp_path, events, run_record.FAILED), "regard run 'a b.yaml'")
    assert "scores" not in summary
    assert commands(summary) == ["regard run 'a b.yaml'"]


def test_missing_and_broken_artifacts_do_not_break_the_summary(tmp_path, events):
    (tmp_path / "e" / "metrics.json").write_text("{")
    (tmp_path / "predictions" / "candidate.parquet").write_bytes(b"")
    summary = summarize(*_run(tmp_path, events))
    assert "scores" not in summary
    assert "examples" not in summary
    assert commands(summary)[0] == 'regard predict tiny "..."'


def test_undefined_metric(tmp_path, events):
    nan = {"name": "pearson", "label": "Pearson", "value": float("nan"), "scale": 1}
    metrics = {"pearson": {**nan, "signature": "nrefs:1|undefined:why"}}
    _write(tmp_path / "e", "metrics.json", {"rows": 9, "metrics": metrics})
    summary = summarize(*_run(tmp_path, events))
    assert json.loads(json.dumps(summary, allow_nan=False))["scores"][0]["value"] is None
    assert "Pearson undefined  nrefs:1|undefined:why" in printed(summary)


def test_image_is_named_by_its_path(tmp_path, events):
    contract = fake_tasks.Namer().contract()
    rows = [prediction_table.Row({"image": b""}, ["a dog", "dogs"], {}, {"image": "d/a.png"})]
    answers = [Prediction({"caption": "a cat", "score": -1.0}, contract)]
    folder = tmp_path / "predictions"
    prediction_table.write(
        folder / prediction_table.CANDIDATE, fake_tasks.CAPTIONING, rows, answers
    )
    prediction_table.write_summary(folder, {"contract": contract})
    run, state = _run(tmp_path, events)
    run.config.write_text("data: {root: /data/flickr, images: pictures}\n")
    summary = summarize(run, state)
    assert commands(summary)[0] == 'regard predict tiny "/data/flickr/pictures/d/a.png"'
    expected = "a.png\n  → a cat\n    reference: a dog\n    reference: dogs\n"
    assert expected in printed(summary)


def test_other_registry_in_the_next_command(tmp_path, events):
    events[-2]["properties"]["pushed_model"]["pushed_destination"] = "/srv/all models/tiny/3"
    summary = summarize(*_run(tmp_path, events))
    assert commands(summary)[0] == "regard predict --registry '/srv/all models' tiny \"source 1\""


def test_lines_of_a_log_are_neither_wrapped_nor_padded(tmp_path, events):
    lines = printed(summarize(*_run(tmp_path, events)), width=30).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert any("1,234,567 parameters" in line and "900 steps" in line for line in lines)


def test_reason_why_a_good_model_was_not_published(tmp_path, events):
    text = "Not pushed. It is the model of tiny@2, which production was rolled back from."
    folder = _write(tmp_path / "p", "pushed.json", {"pushed": False, "text": text})
    others = [event for event in events if event.get("node") != "Pusher"]
    others.append(node_event("Pusher", pushed_model=folder))
    summary = summarize(*_run(tmp_path, others, run_record.NOT_BLESSED))
    assert "pushed" not in summary
    assert summary["not_pushed"] == text.removeprefix("Not pushed. ")
    assert f"not published  {summary['not_pushed']}\n" in printed(summary)
