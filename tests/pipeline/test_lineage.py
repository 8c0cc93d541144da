from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from rich.console import Console

from components.corpus_gen import fingerprint
from components.errors import UserError
from components.registry import Registry
from components.registry.rollback import rollback
from pipeline import lineage, runs
from pipeline.commands import lineage_tree
from pipeline.config import load
from pipeline.inputs import data_section
from pipeline.workspace import Workspace

YAML = "name: tiny\ndata:\n  root: {root}/data\n  train: train.tsv\ntraining:\n  seed: {seed}\n"


class Place:
    """A workspace with data, and a registry whose versions say where they came from."""

    def __init__(self, root):
        self.root, self.workspace, self.yaml = root, Workspace(root / "w"), YAML
        self.paths = self.workspace.pipeline("tiny")
        self.data = root / "data" / "train.tsv"
        self.data.parent.mkdir()
        self.data.write_text("".join(f"a {i}\tb\n" for i in range(50)))

    def push(self, number, compared_with=None, seed=17, **fields):
        """Puts a version into the registry as the Pusher would have."""
        path = self.root / "config.yaml"
        path.write_text(self.yaml.format(root=self.root, seed=seed))
        config = load(path)
        data = data_section(config)
        record = {
            "name": "tiny",
            "version": number,
            "created": "2026-11-22T06:16:37+00:00",
            "config": config.model_dump(mode="json"),
            "data_fingerprint": fingerprint(data),
            "spans": data["spans"]["taken"] if "spans" in data else [],
            "metrics": {"bleu": {"value": 33.127, "signature": "s"}},
            "blessing": "Blessed: BLEU 33.1 is over the floor.",
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

    def trace(self, number):
        version = self.workspace.registry / "tiny" / str(number)
        return lineage.trace(version, self.workspace)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def shown(found, width=100, terminal=False):
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    lineage_tree.show(found, console)
    return console.file.getvalue()


def test_from_the_version_over_the_executions_to_the_data(place, monkeypatch):
    from tests.pipeline import pushing

    monkeypatch.setattr(sys, "argv", ["regard"])
    source = {"files": [str(place.data)], "rows": {"train": 45, "eval": 5}}
    span = {"span": 20777, "name": "2026-11-20", "version": 2, "fingerprint": "f" * 64}
    span |= {"files": {"train": [str(place.data)]}, "rows": {"train": 45, "test": 0}}
    corpus = {"rows": {"train": 45, "eval": 5}, "files": [source], "spans": [span]}
    run = runs.create(place.paths, seconds=57.0, command="regard run c.yaml")
    pushing.push(place.paths, run.id, "uuid-1", corpus)
    place.push(1, run=run.id)

    found = place.trace(1)
    assert found["missing"] == []
    assert (found["model"], found["seed"]) == ("tiny@1", 17)
    assert (found["run"]["id"], found["run"]["seconds"]) == (run.id, 57.0)
    assert [node["node"] for node in found["nodes"]] == ["Pusher", "CorpusGen"]
    assert found["data"]["state"] == lineage.UNCHANGED
    assert found["data"]["rows"] == {"train": 45, "eval": 5}
    (told,) = found["data"]["sources"][0]["files"]
    assert (told["path"], told["bytes"]) == (str(place.data), place.data.stat().st_size)
    assert len(told["sha256"]) == 64
    assert found["data"]["examples"]["properties"]["span"] == 3

    text = shown(found)
    assert f"pushed     2026-11-22 06:16 UTC, by run {run.id}, 57 s" in text
    assert "CorpusGen/examples/1" in text
    assert "└── span 2026-11-20  version 2, 45 train, fingerprint ffffffffffff\n" in text
    assert f"{place.data}  45 train, 5 eval, " in text
    assert "commit cccccccccccc+dirty" in text
    assert "missing" not in text
    assert max(map(len, shown(found, 80, terminal=True).splitlines())) <= 80

    shutil.rmtree(place.paths.artifacts / "CorpusGen")
    found = place.trace(1)
    assert "corpus.json is gone" in found["missing"][0]
    assert [told["path"] for told in found["data"]["sources"][0]["files"]] == [str(place.data)]
    assert "CorpusGen/examples/1  gone" in shown(found)


def test_a_copied_registry_tells_what_it_knows_and_what_is_missing(place):
    place.push(1, run="20260101-101010")
    found = place.trace(1)
    assert found["nodes"] == []
    assert found["run"] == {"id": "20260101-101010"}
    assert found["blessing"].startswith("Blessed")
    assert found["data"]["state"] == lineage.UNCHANGED
    executions, run = found["missing"]
    assert str(place.paths.metadata) in executions
    assert "REGARD_HOME" in executions
    assert "20260101-101010" in run
    assert not place.workspace.pipelines.exists()  # asking makes nothing
    text = shown(found, 40)
    assert "scores     bleu 33.13\n" in text
    assert executions in text  # in a pipe no line is broken


def test_a_broken_store_of_metadata_is_missing_too(place):
    place.push(1)
    place.paths.root.mkdir(parents=True)
    place.paths.metadata.write_text("no database")
    assert "cannot be read" in place.trace(1)["missing"][0]


def test_spans_that_came_since_change_nothing_of_what_a_version_was_trained_on(place):
    place.yaml = YAML.replace("train.tsv", "train-{{SPAN}}.tsv")
    for number in (1, 2, 3):
        (place.data.parent / f"train-{number}.tsv").write_text(f"a {number}\tb\n")
        place.push(number, str(number - 1) if number > 1 else None)
    found = place.trace(2)
    assert found["data"]["state"] == lineage.UNCHANGED
    files = [Path(f["path"]).name for one in found["data"]["sources"] for f in one["files"]]
    assert files == ["train-1.tsv", "train-2.tsv"]
    assert "span 2\n" in shown(found)
    assert "changed since: the data: with span 3" in shown(place.trace(3))
    (place.data.parent / "train-1.tsv").write_text("other\tb\n")
    assert place.trace(2)["data"]["state"] == lineage.CHANGED
    (place.data.parent / "train-1.tsv").unlink()
    assert place.trace(2)["data"]["state"] == lineage.GONE
    assert place.trace(3)["parents"][0]["model"] == "tiny@2"


def test_a_replayed_span_is_told_as_such_and_its_data_are_found_again(place):
    place.yaml = YAML.replace(
        "train.tsv", "train-{{SPAN}}.tsv\n  spans: {{window: 1, replay: 0.5}}"
    )
    for number in (1, 2, 3):
        lines = (f"a {number} {i}\tb\n" for i in range(9))
        (place.data.parent / f"train-{number}.tsv").write_text("".join(lines))
        place.push(number, str(number - 1) if number > 1 else None)
    found = place.trace(3)
    assert found["data"]["state"] == lineage.UNCHANGED
    changed = found["parents"][0]["spans"]
    assert changed == {"new": ["3"], "gone": [], "version": [], "replayed": ["2"]}
    assert "changed since: the data: with span 3, only replaying span 2\n" in shown(found)


def test_another_version_of_a_span_is_told(place):
    one = {"span": 1, "name": "1", "version": 1, "files": {}}
    place.push(1, spans=[one, {**one, "name": "2"}])
    place.push(2, "1", spans=[{**one, "version": 2}], data_fingerprint="f" * 64)
    text = shown(place.trace(2))
    assert "changed since: the data: another version of span 1, without span 2\n" in text


def test_runs_that_pushed_nothing_stand_where_they_were(place):
    def run(started, status, **fields):
        runs.create(place.paths).update(started=started, status=status, **fields)

    def push(number, hour, **fields):
        created = f"2026-11-22T{hour:02}:00:00+00:00"
        place.push(number, str(number - 1) if number > 1 else None, created=created, **fields)

    noon = 1_795_348_800.0  # 2026-11-22T12:00:00+00:00
    push(1, 11)
    run(noon, runs.FAILED, failure={"node": "Trainer", "error": "the loss is no number"})
    push(2, 13, warm_start={"start": {"model": "tiny@1"}})
    spans = [{"name": "8", "replayed": True}, {"name": "9"}]
    reason = "Not blessed: chrF 20.1 is worse than version 2 (99.0)."
    run(noon + 2 * 3600, runs.NOT_BLESSED, reason=reason, data={"spans": spans})
    found = place.trace(2)
    assert [one["status"] for one in found["attempts"]] == [runs.FAILED]
    assert [one["reason"] for one in found["since"]] == [reason]
    push(3, 15, digest="another")
    found = place.trace(3)
    assert [one["reason"] for one in found["attempts"]] == [reason]
    assert found["since"] == []
    second, first = found["parents"]
    assert [one["reason"] for one in second["attempts"]] == ["Trainer: the loss is no number"]
    assert (second["started"], first["started"]) == ("tiny@1", None)
    text = shown(found)
    assert f"not blessed, spans 9, replaying 8: {reason}\n" in text
    assert "started from the weights of tiny@1\n" in text
    assert text.index("not blessed") < text.index("tiny@2") < text.index("Trainer: the loss")
    since = place.trace(2)["since"]  # up to the next version, and no further
    assert [one["reason"] for one in since] == [reason]
    rollback(Registry(place.workspace.registry), "tiny", 2)
    found = place.trace(4)
    # Those before the model was made, not before it came back.
    assert [one["reason"] for one in found["attempts"]] == ["Trainer: the loss is no number"]


@pytest.fixture
def failures(place):
    """Failed runs at three, five, seven and nine o'clock, and versions 1, 3 and 4 between them.

    Version 2, of four o'clock, was pruned.
    """
    midnight = 1_795_305_600.0  # 2026-11-22T00:00:00+00:00
    for hour in (3, 5, 7, 9):
        run = runs.create(place.paths)
        failure = {"error": f"at {hour}"}
        run.update(started=midnight + hour * 3600, status=runs.FAILED, failure=failure)
    place.push(1, None, created="2026-11-22T02:00:00+00:00")
    place.push(3, "2", created="2026-11-22T06:00:00+00:00")
    place.push(4, "3", created="2026-11-22T08:00:00+00:00")
    return place


def reasons(found):
    return [[one["reason"] for one in found[key]] for key in ("attempts", "since")]


def test_where_the_parent_was_pruned_only_what_came_since_the_one_before(failures):
    runs.create(failures.paths).update(started=0.0, status=runs.FAILED, failure={"error": "old"})
    found = failures.trace(3)
    assert reasons(found) == [["at 3", "at 5"], ["at 7"]]
    assert (
        "Which runs pushed nothing between tiny@2 and tiny@3: the one is gone, so those since "
        "tiny@1 are told."
    ) in found["missing"]
    assert [one["reason"] for one in failures.trace(4)["parents"][0]["attempts"]] == [
        "at 3",
        "at 5",
    ]


def test_a_version_that_was_copied_alone_has_the_siblings_of_its_registry(failures):
    for place in (failures.root / "backup", failures.root / "tiny"):
        copied = shutil.copytree(failures.workspace.registry / "tiny" / "4", place / "4")
        found = lineage.trace(copied, failures.workspace)
        assert reasons(found) == [["at 7"], ["at 9"]]
        assert [parent["model"] for parent in found["parents"]] == ["tiny@3", "tiny@2"]
    shutil.rmtree(failures.workspace.registry)
    found = lineage.trace(copied, failures.workspace)
    assert reasons(found) == [[], []]
    assert any("has no version of tiny" in text for text in found["missing"])


def test_the_run_that_a_version_names_pushed_it(failures):
    run = runs.create(failures.paths)
    run.update(started=1_795_305_600.0 + 8.5 * 3600, status=runs.FAILED, failure={"error": "late"})
    failures.push(5, "4", created="2026-11-22T08:45:00+00:00", run=run.id)
    assert reasons(failures.trace(5)) == [[], ["at 9"]]
    assert reasons(failures.trace(4)) == [["at 7"], []]


def test_a_rollback_has_the_lineage_of_its_model(place):
    place.push(1, run="20260101-101010")
    place.push(2, compared_with="1", digest="another", run="20260102-101010")
    rollback(Registry(place.workspace.registry), "tiny", reason="wrong amounts")
    found = place.trace(3)
    assert found["run"] == {"id": "20260101-101010"}
    assert found["parents"] == []
    text = shown(found)
    assert "UTC, instead of tiny@2: wrong amounts\n" in text
    assert "made       as tiny@1, by run 20260101-101010\n" in text


def test_a_version_that_names_no_run(place):
    place.push(1)
    assert "The run: the version does not name it." in place.trace(1)["missing"]


def test_parents_are_told_back_to_the_first_with_what_changed(place):
    place.push(1)
    place.push(2, compared_with="1", seed=3)
    with place.data.open("a") as file:
        file.write("more\trows\n")
    place.push(4, compared_with="2", seed=3)
    found = place.trace(4)
    second, first = found["parents"]
    assert (second["model"], second["changes"], second["same_data"]) == ("tiny@2", [], False)
    assert first["changes"] == [{"key": "training.seed", "a": 17, "b": 3}]
    assert first["same_data"] is True
    text = shown(found)
    assert "changed since: the data" in text
    assert "changed since: training.seed 17 → 3" in text
    assert "parent     none: there was nothing in production" in text


def test_a_deleted_parent_ends_the_chain(place):
    place.push(3, compared_with="2")
    found = place.trace(3)
    assert found["parents"] == [{"model": "tiny@2"}]
    assert any("tiny@2: it is not in the registry" in text for text in found["missing"])


def test_numbers_that_came_twice_are_no_endless_chain(place):
    place.push(4, compared_with="5")
    place.push(5, compared_with="4")
    assert [parent["model"] for parent in place.trace(5)["parents"]] == ["tiny@4", "tiny@5"]


def test_data_that_changed_or_went_since(place):
    place.push(1)
    place.data.write_text("other\trows\n" * 50)
    found = place.trace(1)
    assert found["data"]["state"] == lineage.CHANGED
    assert found["data"]["sources"] == [{"files": [{"path": str(place.data)}]}]
    place.data.unlink()
    found = place.trace(1)
    assert (found["data"]["state"], found["data"]["sources"]) == (lineage.GONE, [])
    assert any("train.tsv" in text for text in found["missing"])


def test_a_configuration_of_another_release_does_no_harm(place):
    place.push(1, config={"task": "translation", "no_such_key": 1})
    found = place.trace(1)
    assert found["data"]["state"] == lineage.UNKNOWN
    assert found["seed"] is None
    assert "fingerprint" in shown(found)


def test_a_model_that_was_not_pushed_is_refused(place):
    folder = place.push(1)
    (folder / "regard.json").unlink()
    with pytest.raises(UserError, match=r"no regard\.json"):
        place.trace(1)
    (folder / "regard.json").write_text('{"run": "of other hands"}')
    with pytest.raises(UserError, match=r"no regard\.json that names it"):
        place.trace(1)
