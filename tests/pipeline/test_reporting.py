from __future__ import annotations

import json

import pytest

from components.reporter.facts import ARTIFACTS
from pipeline import reporting, runs
from pipeline.workspace import Workspace
from tests.components.reporter import runs as made
from tests.pages import plain


@pytest.fixture
def run(tmp_path):
    """A run of the run store whose nodes left what they leave of texts."""
    facts = made.text_run(tmp_path / "artifacts")
    run = runs.create(Workspace(tmp_path).pipeline("mine"))
    run.config.write_text(json.dumps({**facts.about.config, "name": "mine"}), encoding="utf-8")
    outputs = {}
    for name, (node, key) in ARTIFACTS.items():
        outputs.setdefault(node, {})[key] = str(facts.folders[name])
    events = [
        {"kind": "node", "node": node, "state": "done", "seconds": 2.0, "outputs": uris}
        for node, uris in reversed(outputs.items())
    ]
    events[0]["peak_bytes"] = 1_500_000_000
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    run.update(
        status=runs.SUCCEEDED,
        command="regard run it.yaml",
        regard={"version": "0.1.0", "commit": "abc123"},
        data_fingerprint="f1e2",
        stack={"keras": "3.15.1"},
        machine={"system": "Linux x86_64", "cores": 2, "memory_bytes": 24 << 30, "gpus": ["H200"]},
    )
    return run


def test_a_report_is_made_of_a_run(run, tmp_path):
    reporting.write(run, tmp_path / "r.html")
    told = plain((tmp_path / "r.html").read_text(encoding="utf-8"))
    for part in (
        "reaches BLEU 40.00",
        "regard run it.yaml",
        run.id,
        "f1e2",
        "regard 0.1.0 abc123",
        "keras 3.15.1",
        "Linux x86_64, 2 cores, 24.0 GiB, H200",
        "Pusher done 2.0 s 1.4 GiB",
    ):
        assert part in told, part


def test_nodes_stand_in_their_order(run):
    names = [node.name for node in reporting.facts_of(run).about.nodes]
    assert names[0] == "CorpusGen"
    assert names[-1] == "Pusher"


def test_a_run_that_failed_before_its_first_node(tmp_path):
    run = runs.create(Workspace(tmp_path).pipeline("mine"))
    run.update(status=runs.FAILED, failure={"error": "no such file", "remedy": "Mend it."})
    reporting.write(run, tmp_path / "r.html")
    told = plain((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "has not been judged: the run failed." in told
    assert "no such file Mend it." in told


def test_a_run_that_was_killed(tmp_path):
    run = runs.create(Workspace(tmp_path).pipeline("mine"))
    begun = {"time": 1.0, "kind": "node", "node": "Trainer", "state": "running"}
    run.events.write_text(json.dumps(begun) + "\n")
    reporting.write(run, tmp_path / "r.html")
    told = plain((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "the run was killed." in told
    assert "Trainer stopped" in told


def test_artifacts_that_were_swept_away_are_left_out(run, tmp_path):
    (tmp_path / "artifacts" / "predictions").rename(tmp_path / "gone")
    facts = reporting.facts_of(run)
    assert "predictions" not in facts.folders
    assert facts.table is None


def test_figures_are_written_as_files(run, tmp_path):
    found, whole = reporting.write_figures(reporting.facts_of(run), tmp_path / "figures")
    assert whole
    names = {file.name for file in found}
    assert {"loss.svg", "loss.png", "by-length.svg", "entropy.png", "look-worst-1.svg"} <= names
    assert all(file.stat().st_size > 1000 for file in found)
    assert (tmp_path / "figures" / "loss.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["points", "image", "number"])
def test_looks_of_every_task_are_files_too(tmp_path, kind):
    files, _ = reporting.write_figures(made.KINDS[kind](tmp_path / "run"), tmp_path / "figures")
    looks = [file.name for file in files if file.name.startswith("look")]
    # An image that is gone is not drawn; of numbers there is nothing to draw.
    assert len(looks) == {"points": 2 * 14, "image": 2 * 2, "number": 0}[kind]
