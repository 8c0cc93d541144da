"""The results of a comparison."""

import dataclasses
import json

import pytest

from regard.components.common import run_record
from regard.components.common.run_record import RunRecord
from regard.pipeline.compare import gather, plots, results, table
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.runs import store
from regard.pipeline.runs.launch import resolved_yaml
from regard.pipeline.workspace import Workspace, lock_pipeline


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "w")


def comparison(tmp_path, workspace, **training):
    base = {"data": {"train": "t.tsv"}, "training": training}
    text = json.dumps({"name": "m", "base": base, "models": {"a": {}, "b": {"model.dropout": 0.5}}})
    (tmp_path / "m.yaml").write_text(text)
    return read_comparison([tmp_path / "m.yaml"], workspace)


@pytest.fixture
def member(tmp_path, workspace):
    return comparison(tmp_path, workspace).members[0]


def add_run(workspace, member, status=run_record.SUCCEEDED, events=(), **record):
    """Adds a run of a member's pipeline to the run store."""
    run = store.create(workspace.pipeline(member.config.name))
    run.config.write_text(resolved_yaml(member.config))
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    run.update(RunRecord(status=status, **record))
    return run


BLEU = {"name": "bleu", "label": "BLEU", "value": 30.0, "signature": ""}
BUCKET = {"low": 0, "high": None, "rows": 4, "scores": {"candidate": {"bleu": 30.0}}}
BUCKET["intervals"] = {"candidate": None}


def node(name, state="done", **outputs):
    return {"kind": "node", "node": name, "state": state, "seconds": 1.0, "outputs": outputs}


def artifacts(folder, perplexities=(9.0, 7.0, 8.0), **training):
    """Returns the events of a run up to its evaluation, and writes their files."""
    history = [
        {"step": i, "epoch": i, "seconds": 1.0 * i, "perplexity": value, "bleu": 10.0 + i}
        for i, value in enumerate(perplexities, start=1)
    ]
    training = {"parameters": 5, "seconds": 3.5, "history": history, "best_step": 2} | training
    files = {
        "training.json": training,
        "predictions.json": {"sentences_per_second": 2.5, "device": "CPU", "batch_size": 64},
        "metrics.json": {"rows": 4, "metrics": {"bleu": BLEU}},
        "by_length.json": {"unit": "source tokens", "buckets": [BUCKET]},
    }
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    outputs = {"Trainer": "model_run", "Predictor": "predictions", "Evaluator": "evaluation"}
    return [node(name, **{key: str(folder)}) for name, key in outputs.items()]


def test_models_without_a_run_are_waiting(tmp_path, workspace):
    content = gather.gather(comparison(tmp_path, workspace), workspace)
    models = [{"label": m, "pipeline": f"m-{m}", "state": "waiting"} for m in "ab"]
    assert content.to_json() == {"name": "m", "best": {}, "models": models, "baselines": []}


def test_finished_model(tmp_path, workspace, member):
    run = add_run(workspace, member, events=artifacts(tmp_path / "x"))
    entry = gather.model_result(member, workspace)
    assert entry.state == "finished"
    assert entry.run == run.id
    assert (entry.parameters, entry.training_seconds, entry.perplexity) == (5, 3.5, 7.0)
    assert (entry.test_rows, entry.sentences_per_second) == (4, 2.5)
    assert entry.metrics["bleu"].value == 30.0
    assert entry.by_length[0].model_dump() == BUCKET


def test_task_without_perplexity(tmp_path, workspace, member):
    history = [{"step": i, "epoch": i, "seconds": 1.0 * i, "loss": 0.1 / i} for i in (1, 2)]
    add_run(workspace, member, events=artifacts(tmp_path / "x", history=history))
    (tmp_path / "x" / "by_length.json").unlink()
    model = gather.model_result(member, workspace)
    content = results.ComparisonResults(name="m", models=[model])
    assert model.perplexity is None
    assert "perplexity" not in table.markdown(content, "x")
    assert "scores: on the test split, 4 rows" in table.notes([model])
    plots.write_plots(content, tmp_path)
    assert [path.name for path in tmp_path.glob("*.svg")] == ["learning-curves.svg"]
    assert "lowest loss" in (tmp_path / "learning-curves.svg").read_text()


def test_baselines_are_below_the_models(tmp_path, workspace):
    compared = comparison(tmp_path, workspace)
    assert gather.gather(compared, workspace).baselines == []
    add_run(workspace, compared.members[0], events=artifacts(tmp_path / "x"))
    metrics = {"bleu": {**BLEU, "value": 3.0}}
    content = json.loads((tmp_path / "x" / "metrics.json").read_text())
    content["baselines"] = [{"name": "lead_1", "label": "lead-1", "metrics": metrics}]
    (tmp_path / "x" / "metrics.json").write_text(json.dumps(content))
    content = gather.gather(compared, workspace)
    assert content.to_json()["baselines"] == [
        {"label": "lead-1", "state": "finished", "metrics": metrics}
    ]
    last = table.markdown(content, "x").splitlines()[-5:]
    assert any(line.startswith("| lead-1 | – | – ") and "| 3.00 |" in line for line in last)


@pytest.mark.parametrize(
    ("record", "perplexity"),
    [
        ({}, 7.0),
        ({"best_step": 3}, 8.0),  # by BLEU, or better by less than early_stopping.min_delta
        ({"average": {"steps": [1, 2], "perplexity": 6.5}}, 6.5),
        ({"average": {}}, 7.0),
        ({"history": []}, None),
    ],
)
def test_perplexity_is_that_of_the_exported_weights(
    tmp_path, workspace, member, record, perplexity
):
    add_run(workspace, member, events=artifacts(tmp_path / "x", **record))
    assert gather.model_result(member, workspace).perplexity == perplexity


@pytest.mark.parametrize(
    ("status", "events", "state"),
    [
        (run_record.INTERRUPTED, [], "interrupted"),
        (run_record.RUNNING, [], "killed"),
        (run_record.SUCCEEDED, [node("Trainer")], "waiting"),
    ],
)
def test_state_of_a_run(workspace, member, status, events, state):
    add_run(workspace, member, status, events)
    assert gather.model_result(member, workspace).state == state


def test_running_model(workspace, member):
    run = add_run(workspace, member, run_record.RUNNING, [node("Trainer", "running")])
    with lock_pipeline(workspace.pipeline("m-a").lock) as lock:
        lock.describe(run.id)
        assert gather.model_result(member, workspace).state == "running"


def test_results_of_another_configuration_are_ignored(tmp_path, workspace):
    member = comparison(tmp_path, workspace, max_epochs=3).members[0]
    add_run(workspace, member, events=artifacts(tmp_path / "x"))
    changed = comparison(tmp_path, workspace, max_epochs=4).members[0]
    assert gather.model_result(changed, workspace).state == "waiting"
    assert not gather.model_result(changed, workspace).metrics
    assert gather.model_result(member, workspace).metrics


@pytest.mark.parametrize(
    "section",
    [
        {"serving": {"quantization": "int8"}},
        {"augmentation": {"distillation": {"teacher": "t@1"}}},
    ],
)
def test_another_augmentation_or_quantization_is_another_model(
    tmp_path, member, workspace, section
):
    add_run(workspace, member, events=artifacts(tmp_path / "x"))
    changed = type(member.config).model_validate(member.config.model_dump() | section)
    other = dataclasses.replace(member, config=changed)
    states = [gather.model_result(one, workspace).state for one in (member, other)]
    assert states == ["finished", "waiting"]


def test_keys_missing_in_an_older_run_have_their_defaults(tmp_path, workspace, member):
    run = add_run(workspace, member, events=artifacts(tmp_path / "x"))
    lines = run.config.read_text().splitlines()
    shorter = [line for line in lines if not line.startswith("  label_smoothing:")]
    assert len(shorter) == len(lines) - 1
    run.config.write_text("\n".join(shorter))
    assert gather.model_result(member, workspace).state == "finished"


def test_failure_after_a_success_keeps_the_figures(tmp_path, workspace, member):
    good = add_run(workspace, member, events=artifacts(tmp_path / "x"))
    add_run(workspace, member, run_record.FAILED, failure={"node": "Trainer", "error": "no"})
    entry = gather.model_result(member, workspace)
    assert (entry.state, entry.error, entry.run) == ("failed", "Trainer: no", good.id)


def test_missing_and_damaged_artifacts(tmp_path, workspace, member):
    add_run(workspace, member, events=artifacts(tmp_path / "x"))
    (tmp_path / "x" / "training.json").write_text("{")
    (tmp_path / "x" / "predictions.json").unlink()
    entry = gather.model_result(member, workspace)
    assert entry.metrics["bleu"].value == 30.0
    assert not {"parameters", "perplexity", "sentences_per_second"} & entry.model_fields_set
