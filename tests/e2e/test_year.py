"""A year of a pipeline whose data grow by a month at a time, as its user runs and reads of it.

A frozen test set; the two newest months to train on, with a fifth of rows of all those before; each
model started from the one in production. It runs for the first time in March, and neither in May
nor in July. In April the run is killed; from June on there are new words; in September the data
are bad, twice, and mended in November.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.e2e import year
from tests.e2e.conftest import Shell

pytestmark = pytest.mark.slow

PUSHED, REFUSED, BAD_DATA = 0, 3, 2
WEIGHTS = "Format-Serving/variables/variables.data-00000-of-00001"


class Year(Shell):
    """The workspace of the year's pipeline, and what each run left."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.data = folder / "data"
        self.runs: dict[str, SimpleNamespace] = {}
        year.write(self.data, "eval.tsv", year.pairs(year.sentences(40, seed=100)))
        year.write(self.data, "test.tsv", year.pairs(year.sentences(60, seed=101)))

    def deliver(self, month: int, version: int = 1, lines: list[str] | None = None) -> None:
        """A month's file arrives: of good data, where nothing else is given."""
        new = 0.5 if month >= 6 else 0.0
        good = year.pairs(year.sentences(300, month, new))
        year.write(self.data, f"{month:02}-v{version}.tsv", lines or good)

    def configured(self, spans: str = "") -> str:
        """The configuration's name, with more keys of ``data.spans``."""
        (self.folder / "year.yaml").write_text(year.config(spans))
        return "year.yaml"

    def run_month(self, name: str, spans: str = "") -> None:
        """Runs the pipeline, and keeps what it told under a name."""
        before = self.registry()
        done = self.run("run", self.configured(spans))
        self.runs[name] = SimpleNamespace(
            status=done.returncode,
            told=done.stdout + done.stderr,
            before=before,
            after=self.registry(),
            warnings=[e["text"] for e in self.told_events() if e["kind"] == "warning"],
            notes=[e["text"] for e in self.told_events() if e["kind"] == "note"],
            start=self.newest("Trainer/model_run/*/training.json").get("warm_start", {}),
            slices=self.newest("Evaluator/evaluation/*/slices.json").get("slices", []),
            scores=self.scores(),
        )

    @property
    def pipeline(self) -> Path:
        return self.home / "pipelines/year"

    def told_events(self) -> list[dict]:
        newest = max((self.pipeline / "runs").iterdir())
        return [json.loads(line) for line in (newest / "events.jsonl").read_text().splitlines()]

    def newest(self, pattern: str) -> dict:
        """The newest JSON file among the artifacts that fit a pattern."""
        return json.loads(last(self.pipeline, pattern).read_text())

    def scores(self) -> dict[str, float]:
        """chrF of all rows at the newest evaluation, by model."""
        told = self.newest("Evaluator/evaluation/*/metrics.json")
        models = {"candidate": told, "production": told["production"]}
        return {name: one["metrics"]["chrf"]["value"] for name, one in models.items() if one}

    def registry(self) -> dict[str, int]:
        """Every file of the registry with the time of its last change."""
        files = (self.home / "registry").rglob("*")
        return {str(path): path.stat().st_mtime_ns for path in files if path.is_file()}

    def ask(self, *arguments: str):
        """What a command says as JSON."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def kill_in_training(self) -> None:
        """Starts a run and kills it, with all its processes, at its second checkpoint."""
        before, written = self.checkpoints(), set()
        process = self.start("run", self.configured(), start_new_session=True)
        deadline = time.monotonic() + 600
        while len(written) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "no checkpoint"
            time.sleep(0.02)
            written |= self.checkpoints() - before
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)

    def checkpoints(self) -> set[tuple[str, int]]:
        """The last checkpoint of each training, with the time at which it was written."""
        found = set()
        for path in (self.pipeline / "checkpoints").glob("*/last.npz"):
            with contextlib.suppress(FileNotFoundError):  # replaced just now
                found.add((str(path), path.stat().st_mtime_ns))
        return found

    def train_apart(self) -> bytes:
        """The weights of the same training in a copy of the workspace, where nothing is killed."""
        apart = self.folder / "apart"
        shutil.copytree(self.home, apart)
        here, self.home = self.home, apart
        self.environment["REGARD_HOME"] = str(apart)
        done = self.run("run", self.configured(), "--to", "Trainer")
        assert done.returncode == 0, done.stderr
        weights = self.weights()
        self.home = here
        self.environment["REGARD_HOME"] = str(here)
        shutil.rmtree(apart)
        return weights

    def weights(self) -> bytes:
        """Those of the newest training."""
        return last(self.pipeline, f"Trainer/model/*/{WEIGHTS}").read_bytes()


def last(pipeline: Path, pattern: str) -> Path:
    """The file of the newest execution that fits a pattern ``NODE/OUTPUT/*/...``."""
    found = (pipeline / "artifacts").glob(pattern)
    return max(found, key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> Year:
    """The whole year, which takes minutes; the tests only look at it."""
    return lived(tmp_path_factory.mktemp("year"))


def lived(folder: Path) -> Year:
    """The workspace after twelve months."""
    found = Year(folder)
    for month in (1, 2, 3):
        found.deliver(month)
    found.run_month("3")
    found.deliver(4)
    found.apart = found.train_apart()
    found.kill_in_training()
    found.run_month("4")
    found.resumed = found.weights()
    for month in (6, 8):
        found.deliver(month - 1)
        found.deliver(month)
        found.run_month(f"{month}")
    found.deliver(9, 1, [f"{text}\t{text}\n" for text in year.sentences(300, 9, 0.5)])
    found.run_month("9, copies")
    found.deliver(9, 2, list(year.pairs(year.sentences(1200, 9, 0.5), year.confused())))
    found.run_month("9, wrong words")
    found.deliver(10)
    found.run_month("10, without 9", "without: [9]")
    found.deliver(9, 3)
    found.deliver(11)
    found.run_month("11, with 9 mended")
    found.deliver(12)
    found.run_month("12")
    return found


def test_every_good_month_is_pushed(history):
    statuses = {name: run.status for name, run in history.runs.items()}
    bad = {"9, copies": BAD_DATA, "9, wrong words": REFUSED}
    assert statuses == {name: bad.get(name, PUSHED) for name in statuses}, history.runs["9, copies"]
    versions = sorted(int(path.name) for path in (history.home / "registry/year").iterdir())
    assert versions == [1, 2, 3, 4, 5, 6, 7]


def test_a_killed_run_goes_on_and_ends_as_if_it_had_not_been(history):
    assert any(note.startswith("resumed at step") for note in history.runs["4"].notes)
    assert history.resumed == history.apart


def test_new_words_are_told_of_when_they_come_and_later_no_more(history):
    told = {
        name
        for name, run in history.runs.items()
        if any("drift_oov" in text for text in run.warnings)
    }
    assert told == {"6", "9, copies"}
    (warning,) = (text for text in history.runs["6"].warnings if text.startswith("drift_oov"))
    assert any(repr(word) in warning for word in year.NEW_NOUNS + year.NEW_VERBS)


def test_the_new_vocabulary_takes_over_what_the_old_one_had(history):
    start = history.runs["6"].start
    assert start["model"] == "year@2"
    vocabulary = start["vocabularies"]["source"]
    words = len({"the", *year.ADJECTIVES, *year.NOUNS, *year.VERBS})
    assert vocabulary["copied"] >= words
    assert vocabulary["new"] + vocabulary["composed"] == len(year.NEW_NOUNS + year.NEW_VERBS)


def of_span(run, name: str) -> dict[str, float]:
    """The share of right answers to a span's rows, by model."""
    (part,) = (part for part in run.slices if (part["slice"], part["name"]) == ("span", name))
    return {model: part[model]["exact_match"] for model in ("candidate", "production")}


def test_the_newest_month_is_answered_again_though_its_words_are_new(history):
    june = of_span(history.runs["6"], "6")
    assert june["production"] < 0.3
    assert june["candidate"] > 0.8
    assert of_span(history.runs["6"], "fixed")["candidate"] > 0.8  # what it knew, it knows


def test_bad_data_change_nothing_in_production(history):
    for name in ("9, copies", "9, wrong words"):
        assert history.runs[name].after == history.runs[name].before


def test_copies_do_not_come_to_the_training(history):
    told = history.runs["9, copies"].told
    assert "ExampleValidator failed" in told
    assert "same_sides" in told


def test_wrong_words_are_refused_by_the_frozen_test_set(history):
    run = history.runs["9, wrong words"]
    assert "Not blessed: " in run.told
    assert "in span=fixed (60 rows) is worse than version 4" in run.told
    assert not any("drift" in text for text in run.warnings)  # they look like any other month's
    fixed, newest = of_span(run, "fixed"), of_span(run, "9")
    assert fixed["candidate"] < 0.5 < fixed["production"]
    # By its own month, and by all rows together, it is the better one.
    assert newest["production"] + 0.2 < newest["candidate"]
    assert run.scores["candidate"] > run.scores["production"]


def test_the_registry_tells_what_every_version_learned_from(history):
    told = {entry["version"]: entry for entry in history.ask("registry", "list")}
    months = {1: 3, 2: 4, 3: 6, 4: 8, 5: 10, 6: 11, 7: 12}
    for version, entry in told.items():
        there = [str(month) for month in range(1, months[version] + 1)]
        if version == 5:
            there.remove("9")
        assert [span["name"] for span in entry["spans"]] == there
        *old, second, newest = entry["spans"]
        assert [span.get("replayed", False) for span in (second, newest)] == [False, False]
        assert all(span["replayed"] for span in old)
        # A fifth of the rows is of the past, as long as that is.
        rows = sum(span["rows"]["train"] for span in old)
        assert rows / entry["rows"]["train"] == pytest.approx(0.2, abs=0.01)
        assert entry["compared_with"] == (str(version - 1) if version > 1 else "")
    (mended,) = (span for span in told[6]["spans"] if span["name"] == "9")
    assert mended["version"] == 3
    listed = history.run("registry", "list", "year").stdout
    assert "11 to 12 (2), replaying 1 to 10 (10)" in listed


def test_the_lineage_explains_the_whole_year(history):
    found = history.ask("lineage", "year")
    assert found["model"] == "year@7"
    earlier = [f"year@{number}" for number in range(6, 0, -1)]
    assert [parent["model"] for parent in found["parents"]] == earlier
    started = [found["warm_start"]["start"]["model"], *(p["started"] for p in found["parents"])]
    assert started == [*earlier, None]
    changed = {parent["model"]: parent["spans"] for parent in found["parents"]}
    assert changed["year@6"] == {"new": ["12"], "gone": [], "version": [], "replayed": ["10"]}
    assert changed["year@5"]["new"] == ["9", "11"]
    assert changed["year@4"]["new"] == ["10"]
    assert changed["year@2"] == {
        "new": ["5", "6"],
        "gone": [],
        "version": [],
        "replayed": ["3", "4"],
    }

    assert (found["attempts"], found["since"]) == ([], [])
    attempts = {p["model"]: p["attempts"] for p in found["parents"] if p["attempts"]}
    assert list(attempts) == ["year@5", "year@2"]
    copies, words = attempts["year@5"]
    assert (copies["status"], words["status"]) == ("failed", "not blessed")
    assert "same_sides" in copies["reason"]
    assert "worse than version 4" in words["reason"]
    assert [one["spans"][-1]["version"] for one in (copies, words)] == [1, 2]
    (killed,) = attempts["year@2"]
    assert (killed["status"], killed["reason"]) == ("killed", "in Trainer")

    for version in (1, 2, 7):
        told = history.ask("lineage", f"year@{version}")
        assert (told["data"]["state"], told["missing"]) == ("unchanged", [])
    text = history.run("lineage", "year").stdout
    assert "failed, spans 8 to 9 (2), replaying 1 to 7 (7): ExampleValidator: " in text
    assert "not blessed, spans 8 to 9 (2), replaying 1 to 7 (7): Not blessed: " in text
    assert "changed since: the data: with spans 9, 11, only replaying span 8" in text


def test_the_runs_are_listed_with_their_spans(history):
    listed = history.run("runs", "year").stdout.splitlines()
    assert len(listed) == 1 + len(history.runs) + 1  # a heading, and the run that was killed
    refused = "not blessed", "8 to 9 (2), replaying 1 to 7 (7)"
    assert any(all(part in line for part in refused) for line in listed)


def test_going_back_to_a_version_of_the_summer(history):
    done = history.run("rollback", "year", "4", "--reason", "for a test")
    assert done.returncode == 0, done.stderr
    found = history.ask("lineage", "year")
    assert (found["model"], found["rollback_of"]) == ("year@8", 4)
    assert found["parents"][0]["model"] == "year@3"
