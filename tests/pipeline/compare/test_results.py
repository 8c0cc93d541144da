from __future__ import annotations

import json

import pytest

from pipeline import lock, runs
from pipeline.commands.run import resolved_yaml
from pipeline.compare import matrix, pictures, results, table
from pipeline.workspace import Workspace


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "w")


def comparison(tmp_path, workspace, **training):
    base = {"data": {"train": "t.tsv"}, "training": training}
    text = json.dumps({"name": "m", "base": base, "models": {"a": {}, "b": {"model.dropout": 0.5}}})
    (tmp_path / "m.yaml").write_text(text)
    return matrix.read([tmp_path / "m.yaml"], workspace)


def ran(workspace, member, status, events=(), **record):
    """A run of a member's pipeline as it stands in the run store."""
    run = runs.create(workspace.pipeline(member.config.name))
    run.config.write_text(resolved_yaml(member.config))
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    run.update(status=status, **record)
    return run


def node(name, state="done", **outputs):
    return {"kind": "node", "node": name, "state": state, "seconds": 1.0, "outputs": outputs}


def artifacts(folder, perplexities=(9.0, 7.0, 8.0), **training):
    """The events of a run up to its evaluation, and the files that they name."""
    history = [
        {"step": i, "epoch": i, "seconds": 1.0 * i, "perplexity": value, "bleu": 10.0 + i}
        for i, value in enumerate(perplexities, start=1)
    ]
    files = {
        "training.json": {"parameters": 5, "seconds": 3.5, "history": history, "best_step": 2}
        | training,
        "predictions.json": {"sentences_per_second": 2.5, "device": "CPU", "batch_size": 64},
        "metrics.json": {"rows": 4, "metrics": {"bleu": {"name": "bleu", "value": 30.0}}},
        "by_length.json": {"unit": "source pieces", "buckets": [{"from": 0, "to": None}]},
    }
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    outputs = {"Trainer": "model_run", "Predictor": "predictions", "Evaluator": "evaluation"}
    return [node(name, **{key: str(folder)}) for name, key in outputs.items()]


def test_no_run_is_waiting(tmp_path, workspace):
    found = results.gather(comparison(tmp_path, workspace), workspace)
    assert found["name"] == "m"
    assert [(m["label"], m["pipeline"], m["state"]) for m in found["models"]] == [
        ("a", "m-a", "waiting"),
        ("b", "m-b", "waiting"),
    ]


def test_a_finished_model_has_its_figures(tmp_path, workspace):
    member = comparison(tmp_path, workspace).members[0]
    run = ran(
        workspace, member, runs.SUCCEEDED, artifacts(tmp_path / "x"),
        nodes={"Trainer": "done"}, side_by_side=2,
    )  # fmt: skip
    entry = results.look(member, workspace)
    assert entry["state"] == "finished"
    assert entry["run"] == run.id
    assert (entry["parameters"], entry["training_seconds"], entry["perplexity"]) == (5, 3.5, 7.0)
    assert (entry["test_rows"], entry["sentences_per_second"]) == (4, 2.5)
    assert entry["metrics"]["bleu"]["value"] == 30.0
    assert entry["by_length"] == [{"from": 0, "to": None}]
    assert entry["side_by_side"] == 2
    assert results.is_finished(member, workspace)


def test_a_task_without_perplexity(tmp_path, workspace):
    member = comparison(tmp_path, workspace).members[0]
    happened = artifacts(tmp_path / "x")
    content = json.loads((tmp_path / "x" / "training.json").read_text())
    for entry in content["history"]:
        entry["loss"] = entry.pop("perplexity") / 100
    (tmp_path / "x" / "by_length.json").unlink()
    (tmp_path / "x" / "training.json").write_text(json.dumps(content))
    ran(workspace, member, runs.SUCCEEDED, happened, nodes={"Trainer": "done"})
    found = {"name": "m", "models": [results.look(member, workspace)]}
    assert "perplexity" not in found["models"][0]
    assert "perplexity" not in table.markdown(found, "x")
    assert "the scores are of the test split, 4 rows" in table.notes(found["models"])
    assert [path.name for path in pictures.draw(found, tmp_path)] == [
        "learning-curves.svg", "learning-curves.png",
    ]  # fmt: skip
    assert "least loss" in (tmp_path / "learning-curves.svg").read_text()


def test_what_needs_no_model_stands_below_the_models(tmp_path, workspace):
    compared = comparison(tmp_path, workspace)
    assert results.gather(compared, workspace)["baselines"] == []
    happened = artifacts(tmp_path / "x")
    metrics = {"bleu": {"name": "bleu", "label": "BLEU", "value": 3.0}}
    content = json.loads((tmp_path / "x" / "metrics.json").read_text())
    content["baseline"] = {"name": "lead_1", "label": "lead-1", "metrics": metrics}
    (tmp_path / "x" / "metrics.json").write_text(json.dumps(content))
    ran(workspace, compared.members[0], runs.SUCCEEDED, happened, nodes={"Trainer": "done"})
    found = results.gather(compared, workspace)
    assert found["baselines"] == [{"label": "lead-1", "state": "finished", "metrics": metrics}]
    last = table.markdown(found, "x").splitlines()[-5:]
    assert any(line.startswith("| lead-1 | – | – ") and "| 3.00 |" in line for line in last)


def test_what_the_cache_gives_again_keeps_how_it_was_made(tmp_path, workspace):
    member = comparison(tmp_path, workspace).members[0]
    events = artifacts(tmp_path / "x")
    ran(workspace, member, runs.SUCCEEDED, events, nodes={"Trainer": "done"}, side_by_side=3)
    cached = [{**event, "state": "cached"} for event in events]
    ran(workspace, member, runs.SUCCEEDED, cached, nodes={"Trainer": "cached"}, side_by_side=1)
    assert results.look(member, workspace)["side_by_side"] == 3


@pytest.mark.parametrize(
    ("record", "perplexity"),
    [
        ({}, 7.0),
        ({"best_step": 3}, 8.0),  # by BLEU, or better by less than early_stop.min_delta
        ({"averaged": {"steps": [1, 2], "perplexity": 6.5}}, 6.5),
        ({"averaged": {}}, 7.0),
        ({"history": []}, None),
    ],
)
def test_the_perplexity_is_that_of_the_exported_weights(tmp_path, workspace, record, perplexity):
    member = comparison(tmp_path, workspace).members[0]
    ran(workspace, member, runs.SUCCEEDED, artifacts(tmp_path / "x", **record))
    assert results.look(member, workspace).get("perplexity") == perplexity


@pytest.mark.parametrize(
    ("status", "events", "record", "told"),
    [
        (runs.INTERRUPTED, [], {}, {"state": "interrupted"}),
        (runs.RUNNING, [], {}, {"state": "killed"}),
        (runs.SUCCEEDED, [node("Trainer")], {}, {"state": "waiting"}),  # it ran --to the Trainer
        (
            runs.FAILED, [], {"failure": {"node": "Trainer", "error": "no"}},
            {"state": "failed", "detail": "Trainer: no"},
        ),
    ],
)  # fmt: skip
def test_how_a_run_ended(tmp_path, workspace, status, events, record, told):
    member = comparison(tmp_path, workspace).members[0]
    ran(workspace, member, status, events, **record)
    entry = results.look(member, workspace)
    assert {key: entry.get(key) for key in told} == told
    assert not results.is_finished(member, workspace)


def test_a_running_model_says_what_it_does(tmp_path, workspace):
    member = comparison(tmp_path, workspace).members[0]
    progress = {"kind": "progress", "node": "Trainer", "text": "epoch 3"}
    run = ran(workspace, member, runs.RUNNING, [node("Trainer", "running"), progress])
    with lock.acquire(workspace.pipeline("m-a").lock) as held:
        held.describe(run.id)
        entry = results.look(member, workspace)
    assert (entry["state"], entry["detail"]) == ("running", "Trainer: epoch 3")


def test_results_of_another_configuration_are_not_this_models(tmp_path, workspace):
    member = comparison(tmp_path, workspace, max_epochs=3).members[0]
    ran(workspace, member, runs.SUCCEEDED, artifacts(tmp_path / "x"))
    changed = comparison(tmp_path, workspace, max_epochs=4).members[0]
    assert results.look(changed, workspace)["state"] == "waiting"
    assert "metrics" not in results.look(changed, workspace)
    assert "metrics" in results.look(member, workspace)


def test_a_key_that_did_not_exist_when_a_model_ran_has_its_default(tmp_path, workspace):
    member = comparison(tmp_path, workspace).members[0]
    run = ran(workspace, member, runs.SUCCEEDED, artifacts(tmp_path / "x"))
    lines = run.config.read_text().splitlines()
    shorter = [line for line in lines if not line.startswith("  label_smoothing:")]
    assert len(shorter) == len(lines) - 1
    run.config.write_text("\n".join(shorter))
    assert results.look(member, workspace)["state"] == "finished"


def test_a_failure_after_a_success_leaves_the_figures(tmp_path, workspace):
    member = comparison(tmp_path, workspace).members[0]
    good = ran(workspace, member, runs.SUCCEEDED, artifacts(tmp_path / "x"))
    ran(workspace, member, runs.FAILED, [], failure={"error": "no"})
    entry = results.look(member, workspace)
    assert (entry["state"], entry["detail"], entry["run"]) == ("failed", "no", good.id)


def test_data_that_changed_between_two_models_shows(tmp_path, workspace):
    members = comparison(tmp_path, workspace).members
    for member, content in zip(members, ("one", "one"), strict=True):
        events = artifacts(tmp_path / member.label)
        (tmp_path / member.label / "source.model").write_text(content)
        (tmp_path / member.label / "references.txt").write_text("same")
        events.append(node("TokenizerTrainer", tokenizer=str(tmp_path / member.label)))
        ran(workspace, member, runs.SUCCEEDED, events)
    one, other = (results.look(member, workspace) for member in members)
    assert (one["tokenizer"], one["references"]) == (other["tokenizer"], other["references"])
    (tmp_path / "b" / "source.model").write_text("two")
    other = results.look(members[1], workspace)
    assert one["tokenizer"] != other["tokenizer"]
    assert one["references"] == other["references"]


def test_missing_and_broken_artifacts_leave_the_rest(tmp_path, workspace):
    member = comparison(tmp_path, workspace).members[0]
    ran(workspace, member, runs.SUCCEEDED, artifacts(tmp_path / "x"))
    (tmp_path / "x" / "training.json").write_text("{")
    (tmp_path / "x" / "predictions.json").unlink()
    entry = results.look(member, workspace)
    assert entry["metrics"]["bleu"]["value"] == 30.0
    assert not {"parameters", "perplexity", "sentences_per_second"} & set(entry)
