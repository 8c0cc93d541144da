import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from regard.components.common import run_record
from regard.components.common.run_record import RunRecord
from regard.components.data.fingerprints import fingerprint
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.core import events
from regard.core.errors import UserError
from regard.pipeline.cli.rendering import lineage_tree
from regard.pipeline.config import load
from regard.pipeline.context import resolve_data
from regard.pipeline.lineage.trace import CHANGED, MISSING, UNCHANGED, UNKNOWN, trace
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace

MIDNIGHT = 1_795_305_600.0  # 2026-11-22T00:00:00+00:00
YAML = "name: tiny\ndata:\n  root: {root}/data\n  train: train.tsv\ntraining:\n  seed: {seed}\n"


def created(hour, rest="00:00"):
    return f"2026-11-22T{hour:02}:{rest}+00:00"


class Place:
    """A workspace with data, and a registry of versions with records."""

    def __init__(self, root):
        self.root, self.workspace, self.yaml = root, Workspace(root / "w"), YAML
        self.paths = self.workspace.pipeline("tiny")
        self.data = root / "data" / "train.tsv"
        self.data.parent.mkdir()
        self.data.write_text("".join(f"a {i}\tb\n" for i in range(50)))

    def push(self, number, compared_with=None, seed=17, **fields):
        """Add a version to the registry as the Pusher would."""
        path = self.root / "config.yaml"
        path.write_text(self.yaml.format(root=self.root, seed=seed))
        config = load(path)
        corpus = resolve_data(config)
        record = {
            "name": "tiny",
            "version": number,
            "created": created(6, "16:37"),
            "config": config.model_dump(mode="json"),
            "data_fingerprint": fingerprint(corpus),
            "spans": [span.to_json() for span in corpus.spans],
            "metrics": {"bleu": {"value": 33.127, "signature": "s"}},
            "blessing": "Passed: BLEU 33.1 is above the threshold of 30.0.",
            "compared_with": compared_with,
            "regard": {"version": "0.1.0", "commit": "c" * 40 + "+dirty"},
            "stack": {"keras": "3.15.1"},
            "mlmd_uuid": f"uuid-{number}",
            **fields,
        }
        folder = self.workspace.registry / "tiny" / str(number)
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").touch()
        (folder / "regard.json").write_text(json.dumps(record))
        return folder

    def add_run(self, hour, status=run_record.FAILED, **fields):
        """Add a run that started at this hour of 2026-11-22."""
        run = store.create(self.paths)
        run.update(RunRecord(started=MIDNIGHT + 3600 * hour, status=status, **fields))
        return run.id

    def trace(self, number):
        version = self.workspace.registry / "tiny" / str(number)
        return trace(version, self.workspace)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def render(result, width=100, terminal=False):
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    lineage_tree.show(result, console)
    return console.file.getvalue()


def write_nodes(run, **states):
    """Write the events of nodes, whose outputs are folders of the pipeline's artifacts."""
    for name, (state, seconds, *keys) in states.items():
        folders = [run.workspace.pipeline("tiny").artifacts / name / key / "1" for key in keys]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        outputs = dict(zip(keys, map(str, folders), strict=True))
        facts = {"node": name, "state": state, "seconds": seconds, "outputs": outputs}
        events.write(run.events, "node", **facts)


def test_a_version_is_traced_to_its_data(place):
    source = {"files": [str(place.data)], "rows": {"train": 45, "eval": 5}}
    span = {"span": 20777, "name": "2026-11-20", "version": 2, "fingerprint": "f" * 64}
    span |= {"files": {"train": [str(place.data)]}, "rows": {"train": 45, "test": 0}}
    corpus = {"rows": {"train": 45, "eval": 5}, "files": [source], "spans": [span]}
    run = store.create(place.paths, RunRecord(seconds=57.0, command="regard run c.yaml"))
    corpus_gen = ("done", 2.0, "examples", "findings")
    write_nodes(run, CorpusGen=corpus_gen, Pusher=("done", 1.0, "pushed_model"))
    (place.paths.artifacts / "CorpusGen/findings/1/corpus.json").write_text(json.dumps(corpus))
    place.push(1, run=run.id)

    result = place.trace(1)
    assert result.missing == []
    assert (result.model, result.seed) == ("tiny@1", 17)
    assert (result.run["id"], result.run["seconds"]) == (run.id, 57.0)
    assert [node.node for node in result.nodes] == ["Pusher", "CorpusGen"]
    assert result.data.state == UNCHANGED
    assert result.data.rows == {"train": 45, "eval": 5}
    assert result.data.sources == [source]

    text = render(result)
    assert f"pushed     2026-11-22 06:16 UTC, by run {run.id}, 57 s" in text
    assert "CorpusGen/examples/1" in text
    assert "└── span 2026-11-20  version 2, 45 train, fingerprint ffffffffffff\n" in text
    assert f"{place.data}  45 train, 5 eval\n" in text
    assert "commit cccccccccccc+dirty" in text
    assert "missing" not in text
    assert f"{place.data}  45 train" in render(result, 40, terminal=True)  # paths are not wrapped

    shutil.rmtree(place.paths.artifacts / "CorpusGen")
    result = place.trace(1)
    assert "corpus.json is missing" in result.missing[0]
    assert result.data.sources == [{"files": [str(place.data)]}]
    assert "CorpusGen/examples/1  deleted" in render(result)


def test_cached_nodes_are_traced_to_the_run_that_executed_them(place):
    runs = [store.create(place.paths) for _ in range(3)]
    states = (("failed", 9.0), ("done", 2.0), ("cached", 0.1))
    for run, (state, seconds) in zip(runs, states, strict=True):
        write_nodes(run, CorpusGen=(state, seconds, "examples"))
    write_nodes(runs[2], Pusher=("done", 1.0, "pushed_model"))
    place.push(1, run=runs[2].id)
    pusher, corpus = place.trace(1).nodes
    assert (pusher.node, pusher.run, pusher.seconds) == ("Pusher", runs[2].id, 1.0)
    assert not pusher.cached
    assert (corpus.run, corpus.cached, corpus.seconds) == (runs[1].id, True, 2.0)
    assert [(output.key, output.exists) for output in corpus.outputs] == [("examples", True)]
    assert f"CorpusGen  2.0 s    execution 1  cached, of run {runs[1].id}\n" in render(
        place.trace(1)
    )

    shutil.rmtree(runs[1].directory)
    corpus = place.trace(1).nodes[1]
    assert (corpus.run, corpus.cached) == ("", True)
    assert "cached\n" in render(place.trace(1))


def test_a_copied_registry_reports_missing_parts(place):
    place.push(1, run="20260101-101010")
    result = place.trace(1)
    assert result.nodes == []
    assert result.run == {"id": "20260101-101010"}
    assert result.record.blessing.startswith("Passed")
    assert result.data.state == UNCHANGED
    nodes, run = result.missing
    assert str(place.paths.runs / "20260101-101010") in nodes
    assert "REGARD_HOME" in nodes
    assert "20260101-101010" in run
    assert not place.workspace.pipelines.exists()  # tracing creates nothing
    text = render(result, 40)
    assert "scores     bleu 33.13\n" in text
    assert nodes in text  # lines are not wrapped in a pipe


def test_a_version_without_a_run_is_reported(place):
    place.push(1)
    nodes, run = place.trace(1).missing
    assert "there are no events" in nodes
    assert run == "Run: the version does not name it."


def push_spans(place, settings=""):
    """Push three versions, each with one more span than the one before."""
    place.yaml = YAML.replace("train.tsv", "train-{{SPAN}}.tsv" + settings)
    for number in (1, 2, 3):
        lines = (f"a {number} {i}\tb\n" for i in range(9))
        (place.data.parent / f"train-{number}.tsv").write_text("".join(lines))
        place.push(number, str(number - 1) if number > 1 else None)


def test_later_spans_do_not_change_the_data_of_a_version(place):
    push_spans(place)
    result = place.trace(2)
    assert result.data.state == UNCHANGED
    files = [Path(file).name for source in result.data.sources for file in source["files"]]
    assert files == ["train-1.tsv", "train-2.tsv"]
    assert "span 2\n" in render(result)
    assert "changed since: the data: with span 3" in render(place.trace(3))


def test_replayed_spans_are_traced(place):
    push_spans(place, "\n  spans: {{window: 1, replay: 0.5}}")
    result = place.trace(3)
    assert result.data.state == UNCHANGED
    changes = result.parents[0]["span_changes"]
    assert changes == {"new": ["3"], "removed": [], "version": [], "replayed": ["2"]}
    assert "changed since: the data: with span 3, only replaying span 2\n" in render(result)


def test_another_version_of_a_span_is_reported(place):
    span = {"span": 1, "name": "1", "version": 1, "files": {}}
    place.push(1, spans=[span, {**span, "name": "2"}])
    place.push(2, "1", spans=[{**span, "version": 2}], data_fingerprint="f" * 64)
    text = render(place.trace(2))
    assert "changed since: the data: another version of span 1, without span 2\n" in text


def test_runs_without_a_version_are_listed_in_order(place):
    place.push(1, created=created(11))
    place.add_run(12, failure={"node": "Trainer", "error": "the loss is no number"})
    place.push(2, "1", created=created(13), warm_start={"start": {"model": "tiny@1"}})
    spans = [{"name": "8", "replayed": True}, {"name": "9"}]
    reason = "Failed: chrF 20.1 is worse than version 2 (99.0)."
    place.add_run(14, run_record.NOT_BLESSED, reason=reason, data={"spans": spans})
    assert reasons(place.trace(2)) == [["Trainer: the loss is no number"], [reason]]
    place.push(3, "2", created=created(15), digest="another")
    result = place.trace(3)
    assert reasons(result) == [[reason], []]
    second, first = result.parents
    assert [run["reason"] for run in second["failed_before"]] == ["Trainer: the loss is no number"]
    assert [parent["started_from"] for parent in (second, first)] == ["tiny@1", None]
    text = render(result)
    assert f"not blessed, spans 9, replaying 8: {reason}\n" in text
    assert "started from the weights of tiny@1\n" in text
    assert text.index("not blessed") < text.index("tiny@2") < text.index("Trainer: the loss")
    rollback(Registry(place.workspace.registry), "tiny", 2)
    # Runs before the model was made, not before the rollback.
    assert reasons(place.trace(4))[0] == ["Trainer: the loss is no number"]


@pytest.fixture
def failures(place):
    """Failed runs at three, five, seven and nine o'clock, and versions 1, 3 and 4 between them.

    Version 2, of four o'clock, was pruned.
    """
    for hour in (3, 5, 7, 9):
        place.add_run(hour, failure={"error": f"at {hour}"})
    place.push(1, None, created=created(2))
    place.push(3, "2", created=created(6))
    place.push(4, "3", created=created(8))
    return place


def reasons(result):
    """The reasons of the failed runs before a version and since."""
    before = [run["reason"] for run in result.failed_before]
    return [before, [run["reason"] for run in result.failed_since]]


def test_a_pruned_parent_limits_the_listed_runs(failures):
    failures.add_run(0, failure={"error": "old"})
    result = failures.trace(3)
    assert reasons(result) == [["at 3", "at 5"], ["at 7"]]
    before = failures.trace(4).parents[0]["failed_before"]
    assert [run["reason"] for run in before] == ["at 3", "at 5"]


def test_runs_named_by_versions_are_not_listed_as_failed(failures):
    run = failures.add_run(8.5, failure={"error": "late"})
    failures.push(5, "4", created=created(8, "45:00"), run=run)
    assert reasons(failures.trace(5)) == [[], ["at 9"]]
    assert reasons(failures.trace(4)) == [["at 7"], []]


def test_a_rollback_has_the_lineage_of_its_model(place):
    place.push(1, run="20260101-101010")
    place.push(2, compared_with="1", digest="another", run="20260102-101010")
    rollback(Registry(place.workspace.registry), "tiny", reason="wrong amounts")
    result = place.trace(3)
    assert result.run == {"id": "20260101-101010"}
    assert result.parents == []
    text = render(result)
    assert "UTC, replaces tiny@2: wrong amounts\n" in text
    assert "first as   tiny@1, by run 20260101-101010\n" in text


def test_parents_are_listed_with_changes(place):
    place.push(1, warm_start={"start": {"model": "other@1"}})
    place.push(2, compared_with="1", seed=3)
    with place.data.open("a") as file:
        file.write("more\trows\n")
    place.push(4, compared_with="2", seed=3)
    result = place.trace(4)
    second, first = result.parents
    assert (second["model"], second["changes"], second["same_data"]) == ("tiny@2", [], False)
    assert first["changes"] == [{"key": "training.seed", "a": 17, "b": 3}]
    assert (first["same_data"], first["started_from"]) == (True, "other@1")
    text = render(result)
    assert "changed since: the data" in text
    assert "changed since: training.seed 17 → 3" in text
    assert "parent     none: no model was in production" in text


def test_cycles_of_versions_end(place):
    place.push(4, compared_with="5")
    place.push(5, compared_with="4")
    assert [parent["model"] for parent in place.trace(5).parents] == ["tiny@4", "tiny@5"]


def test_changed_and_missing_data(place):
    place.push(1)
    place.data.write_text("other\trows\n" * 50)
    result = place.trace(1)
    assert result.data.state == CHANGED
    assert result.data.sources == [{"files": [str(place.data)]}]
    place.data.unlink()
    result = place.trace(1)
    assert (result.data.state, result.data.sources) == (MISSING, [])
    assert any("train.tsv" in text for text in result.missing)


def test_a_configuration_of_another_release_is_tolerated(place):
    place.push(1, config={"task": "translation", "no_such_key": 1})
    result = place.trace(1)
    assert result.data.state == UNKNOWN
    assert result.seed is None
    assert "fingerprint" in render(result)


def test_a_folder_without_a_record_is_an_error(place):
    folder = place.push(1)
    (folder / "regard.json").unlink()
    with pytest.raises(UserError, match=r"no regard\.json"):
        place.trace(1)
    (folder / "regard.json").write_text('{"run": "of another tool"}')
    with pytest.raises(UserError, match=r"no regard\.json with a name"):
        place.trace(1)


def test_the_json_form_and_a_removed_parent(place):
    place.push(3, compared_with="2")
    content = json.loads(json.dumps(place.trace(3).to_dict()))
    assert (content["model"], content["seed"]) == ("tiny@3", 17)
    assert content["metrics"] == {"bleu": {"value": 33.127, "signature": "s"}}
    assert content["data"]["state"] == UNCHANGED
    assert content["parents"] == [{"model": "tiny@2"}]
    assert any("tiny@2: it is not in the registry" in text for text in content["missing"])


def test_a_variable_that_is_not_set_is_named(place):
    folder = place.push(1)
    record = json.loads((folder / "regard.json").read_text())
    record["config"]["data"]["root"] = "${NOWHERE}/data"
    (folder / "regard.json").write_text(json.dumps(record))
    lineage = trace(folder, place.workspace)
    assert lineage.data.state == UNKNOWN
    assert "State of the data: the environment variable NOWHERE is not set." in lineage.missing
