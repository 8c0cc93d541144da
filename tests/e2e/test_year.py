"""A year of a pipeline whose data grow by one month at a time.

The test set is frozen. Each model trains on the two newest months, with a fifth of its rows
replayed from older ones, and starts from the model in production. The pipeline runs first in March,
and neither in May nor in July. The run of April is killed; new words come up in June; the data of
September are bad twice, and corrected in November.
"""

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

PUSHED, NOT_PUSHED, BAD_DATA = 0, 3, 2
WEIGHTS = "Format-Serving/variables/variables.data-00000-of-00001"


class Year(Shell):
    """The workspace of the pipeline, and the results of each run."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.data = folder / "data"
        self.runs: dict[str, SimpleNamespace] = {}
        year.write(self.data, "eval.tsv", year.pairs(year.sentences(40, seed=100)))
        year.write(self.data, "test.tsv", year.pairs(year.sentences(60, seed=101)))

    def deliver(self, month: int, version: int = 1, lines: list[str] | None = None) -> None:
        """Write the file of a month; by default with good data."""
        new = 0.5 if month >= 6 else 0.0
        good = year.pairs(year.sentences(300, month, new))
        year.write(self.data, f"{month:02}-v{version}.tsv", lines or good)

    def configure_year(self, spans: str = "") -> str:
        """Write the configuration, with more keys of ``data.spans``, and return its name."""
        (self.folder / "year.yaml").write_text(year.config(spans))
        return "year.yaml"

    def run_month(self, name: str, spans: str = "") -> None:
        """Run the pipeline, and keep its results under a name."""
        before = self.registry()
        result = self.run("run", self.configure_year(spans))
        self.runs[name] = SimpleNamespace(
            status=result.returncode,
            output=result.stdout + result.stderr,
            before=before,
            after=self.registry(),
            warnings=[e["text"] for e in self.last_events() if e["kind"] == "warning"],
            notes=[e["text"] for e in self.last_events() if e["kind"] == "note"],
            start=self.newest("Trainer/model_run/*/training.json").get("warm_start", {}),
            slices=self.newest("Evaluator/evaluation/*/slices.json").get("slices", []),
            scores=self.scores(),
        )

    @property
    def pipeline(self) -> Path:
        return self.home / "pipelines/year"

    def last_events(self) -> list[dict]:
        newest = max((self.pipeline / "runs").iterdir())
        return [json.loads(line) for line in (newest / "events.jsonl").read_text().splitlines()]

    def newest(self, pattern: str) -> dict:
        """Return the newest JSON file among the artifacts that match a pattern."""
        return json.loads(newest_file(self.pipeline, pattern).read_text())

    def scores(self) -> dict[str, float]:
        """Return chrF of all rows at the newest evaluation, by model."""
        metrics = self.newest("Evaluator/evaluation/*/metrics.json")
        models = {"candidate": metrics, "production": metrics["production"]}
        return {name: m["metrics"]["chrf"]["value"] for name, m in models.items() if m}

    def registry(self) -> dict[str, int]:
        """Return the modification time of every file of the registry."""
        files = (self.home / "registry").rglob("*")
        return {str(path): path.stat().st_mtime_ns for path in files if path.is_file()}

    def run_json(self, *arguments: str):
        """Return the JSON output of a command."""
        result = self.run(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def kill_in_training(self) -> None:
        """Start a run and kill it, with all its processes, at its second checkpoint."""
        before, new = self.checkpoints(), set()
        process = self.start("run", self.configure_year(), start_new_session=True)
        deadline = time.monotonic() + 600
        while len(new) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "no checkpoint"
            time.sleep(0.02)
            new |= self.checkpoints() - before
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)

    def checkpoints(self) -> set[tuple[str, int]]:
        """Return the last checkpoint of each training with its modification time."""
        checkpoints = set()
        for path in (self.pipeline / "checkpoints").glob("*/last.npz"):
            with contextlib.suppress(FileNotFoundError):  # just replaced
                checkpoints.add((str(path), path.stat().st_mtime_ns))
        return checkpoints

    def train_uninterrupted(self) -> bytes:
        """Return the weights of the same training in a copy of the workspace, without a kill."""
        copy = self.folder / "copy"
        shutil.copytree(self.home, copy)
        original, self.home = self.home, copy
        self.environment["REGARD_HOME"] = str(copy)
        result = self.run("run", self.configure_year(), "--to", "Trainer")
        assert result.returncode == 0, result.stderr
        weights = self.weights()
        self.home = original
        self.environment["REGARD_HOME"] = str(original)
        shutil.rmtree(copy)
        return weights

    def weights(self) -> bytes:
        """Return the weights of the newest training."""
        return newest_file(self.pipeline, f"Trainer/model/*/{WEIGHTS}").read_bytes()


def newest_file(pipeline: Path, pattern: str) -> Path:
    """Return the newest artifact file that matches a pattern ``NODE/OUTPUT/*/...``."""
    paths = (pipeline / "artifacts").glob(pattern)
    return max(paths, key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> Year:
    """The whole year, which takes minutes. The tests only read it."""
    return run_year(tmp_path_factory.mktemp("year"))


def run_year(folder: Path) -> Year:
    """Return the workspace after twelve months."""
    history = Year(folder)
    for month in (1, 2, 3):
        history.deliver(month)
    history.run_month("3")
    history.deliver(4)
    history.expected_weights = history.train_uninterrupted()
    history.kill_in_training()
    history.run_month("4")
    history.resumed_weights = history.weights()
    for month in (6, 8):
        history.deliver(month - 1)
        history.deliver(month)
        history.run_month(f"{month}")
    history.deliver(9, 1, [f"{text}\t{text}\n" for text in year.sentences(300, 9, 0.5)])
    history.run_month("9, copies")
    history.deliver(9, 2, list(year.pairs(year.sentences(1200, 9, 0.5), year.wrong_dictionary())))
    history.run_month("9, wrong words")
    history.deliver(10)
    history.run_month("10, without 9", "exclude: [9]")
    history.deliver(9, 3)
    history.deliver(11)
    history.run_month("11, with 9 corrected")
    history.deliver(12)
    history.run_month("12")
    return history


def test_every_good_month_is_pushed(history):
    statuses = {name: run.status for name, run in history.runs.items()}
    bad = {"9, copies": BAD_DATA, "9, wrong words": NOT_PUSHED}
    assert statuses == {name: bad.get(name, PUSHED) for name in statuses}, history.runs["9, copies"]
    versions = sorted(int(path.name) for path in (history.home / "registry/year").iterdir())
    assert versions == [1, 2, 3, 4, 5, 6, 7]


def test_a_killed_run_resumes_with_the_same_weights(history):
    assert any(note.startswith("resumed at step") for note in history.runs["4"].notes)
    assert history.resumed_weights == history.expected_weights


def test_new_words_are_reported_only_when_they_appear(history):
    warned = {
        name
        for name, run in history.runs.items()
        if any("drift_oov" in text for text in run.warnings)
    }
    assert warned == {"6", "9, copies"}
    (warning,) = (text for text in history.runs["6"].warnings if text.startswith("drift_oov"))
    assert any(repr(word) in warning for word in year.NEW_NOUNS + year.NEW_VERBS)


def test_the_new_vocabulary_keeps_the_old_embeddings(history):
    start = history.runs["6"].start
    assert start["model"] == "year@2"
    vocabulary = start["vocabularies"]["source"]
    words = len({"the", *year.ADJECTIVES, *year.NOUNS, *year.VERBS})
    assert vocabulary["copied"] >= words
    assert vocabulary["new"] + vocabulary["composed"] == len(year.NEW_NOUNS + year.NEW_VERBS)


def of_span(run, name: str) -> dict[str, float]:
    """Return the exact match of a span, by model."""
    (part,) = (part for part in run.slices if (part["kind"], part["name"]) == ("span", name))
    return {model: part["scores"][model]["exact_match"] for model in ("candidate", "production")}


def test_the_new_words_are_learned_without_forgetting(history):
    june = of_span(history.runs["6"], "6")
    assert june["production"] < 0.3
    assert june["candidate"] > 0.8
    assert of_span(history.runs["6"], "fixed")["candidate"] > 0.8


def test_bad_data_does_not_change_production(history):
    for name in ("9, copies", "9, wrong words"):
        assert history.runs[name].after == history.runs[name].before


def test_copied_sides_are_refused_before_the_training(history):
    output = history.runs["9, copies"].output
    assert "ExampleValidator failed" in output
    assert "same_sides" in output


def test_wrong_translations_fail_on_the_frozen_test_set(history):
    run = history.runs["9, wrong words"]
    assert "Failed: " in run.output
    assert "in span=fixed (60 rows) is worse than version 4" in run.output
    assert not any("drift" in text for text in run.warnings)  # the source side is as usual
    fixed, newest = of_span(run, "fixed"), of_span(run, "9")
    assert fixed["candidate"] < 0.5 < fixed["production"]
    # By its own month and by all rows together it would be better.
    assert newest["production"] + 0.2 < newest["candidate"]
    assert run.scores["candidate"] > run.scores["production"]


def test_the_registry_lists_the_spans_of_every_version(history):
    entries = {entry["version"]: entry for entry in history.run_json("registry", "list")}
    months = {1: 3, 2: 4, 3: 6, 4: 8, 5: 10, 6: 11, 7: 12}
    for version, entry in entries.items():
        expected = [str(month) for month in range(1, months[version] + 1)]
        if version == 5:
            expected.remove("9")
        assert [span["name"] for span in entry["spans"]] == expected
        *old, second, newest = entry["spans"]
        assert [span.get("replayed", False) for span in (second, newest)] == [False, False]
        assert all(span["replayed"] for span in old)
        # A fifth of the rows is replayed.
        rows = sum(span["rows"]["train"] for span in old)
        assert rows / entry["rows"]["train"] == pytest.approx(0.2, abs=0.01)
        assert entry["compared_with"] == (str(version - 1) if version > 1 else "")
    (corrected,) = (span for span in entries[6]["spans"] if span["name"] == "9")
    assert corrected["version"] == 3
    listed = history.run("registry", "list", "year").stdout
    assert "11 to 12 (2), replaying 1 to 10 (10)" in listed


def test_the_lineage_covers_the_whole_year(history):
    lineage = history.run_json("lineage", "year")
    assert lineage["model"] == "year@7"
    earlier = [f"year@{number}" for number in range(6, 0, -1)]
    assert [parent["model"] for parent in lineage["parents"]] == earlier
    started = [
        lineage["warm_start"]["start"]["model"],
        *(p["started_from"] for p in lineage["parents"]),
    ]
    assert started == [*earlier, None]
    changed = {parent["model"]: parent["span_changes"] for parent in lineage["parents"]}
    assert changed["year@6"] == {"new": ["12"], "removed": [], "version": [], "replayed": ["10"]}
    assert changed["year@5"]["new"] == ["9", "11"]
    assert changed["year@4"]["new"] == ["10"]
    assert changed["year@2"] == {
        "new": ["5", "6"],
        "removed": [],
        "version": [],
        "replayed": ["3", "4"],
    }

    assert (lineage["failed_before"], lineage["failed_since"]) == ([], [])
    attempts = {p["model"]: p["failed_before"] for p in lineage["parents"] if p["failed_before"]}
    assert list(attempts) == ["year@5", "year@2"]
    copies, words = attempts["year@5"]
    assert (copies["status"], words["status"]) == ("failed", "not blessed")
    assert "same_sides" in copies["reason"]
    assert "worse than version 4" in words["reason"]
    assert [run["spans"][-1]["version"] for run in (copies, words)] == [1, 2]
    (killed,) = attempts["year@2"]
    assert (killed["status"], killed["reason"]) == ("killed", "in Trainer")

    for version in (1, 2, 7):
        lineage = history.run_json("lineage", f"year@{version}")
        assert (lineage["data"]["state"], lineage["missing"]) == ("unchanged", [])
    text = history.run("lineage", "year").stdout
    assert "failed, spans 8 to 9 (2), replaying 1 to 7 (7): ExampleValidator: " in text
    assert "not blessed, spans 8 to 9 (2), replaying 1 to 7 (7): Failed: " in text
    assert "changed since: the data: with spans 9, 11, only replaying span 8" in text


def test_the_runs_are_listed_with_their_spans(history):
    listed = history.run("runs", "year").stdout.splitlines()
    assert len(listed) == 1 + len(history.runs) + 1  # a heading, and the run that was killed
    refused = "not blessed", "8 to 9 (2), replaying 1 to 7 (7)"
    assert any(all(part in line for part in refused) for line in listed)


def test_rollback_to_an_older_version(history):
    result = history.run("rollback", "year", "4", "--reason", "for a test")
    assert result.returncode == 0, result.stderr
    lineage = history.run_json("lineage", "year")
    assert (lineage["model"], lineage["rollback_of"]) == ("year@8", 4)
    assert lineage["parents"][0]["model"] == "year@3"
