import json

import pytest

from regard.components.common import run_record
from regard.components.common.run_record import RunRecord
from regard.components.reporter.run_facts import ARTIFACTS
from regard.pipeline.lineage import run_report
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace
from tests.components.reporter import sample_runs
from tests.pages import plain


@pytest.fixture
def run(tmp_path):
    """A run in the run store with the artifacts of a text-to-text task."""
    facts = sample_runs.text_run(tmp_path / "artifacts")
    run = store.create(Workspace(tmp_path).pipeline("mine"))
    run.config.write_text(json.dumps({**facts.config, "name": "mine"}), encoding="utf-8")
    outputs = {}
    for name, (node, key) in ARTIFACTS.items():
        outputs.setdefault(node, {})[key] = str(facts.folders[name])
    events = [
        {"kind": "node", "node": node, "state": "done", "seconds": 2.0, "outputs": uris}
        for node, uris in reversed(outputs.items())
    ]
    events[0]["peak_bytes"] = 1_500_000_000
    events.insert(0, {"kind": "plan", "nodes": ["CorpusGen", "Own", *list(outputs)[1:]]})
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    run.update(
        RunRecord(
            status=run_record.SUCCEEDED,
            command="regard run it.yaml",
            regard={"version": "0.1.0", "commit": "abc123"},
            data_fingerprint="f1e2",
            stack={"keras": "3.15.1"},
            machine={
                "system": "Linux x86_64",
                "cores": 2,
                "memory_bytes": 24 << 30,
                "gpus": ["H200"],
            },
        )
    )
    return run


def page_of(run, folder):
    run_report.write_report(run, folder / "r.html")
    return plain((folder / "r.html").read_text(encoding="utf-8"))


def test_report_of_a_successful_run(run, tmp_path):
    names = [*run_report.read_facts(run).run.nodes]
    assert (names[0], names[-1]) == ("CorpusGen", "Pusher")  # in the order of the pipeline
    text = page_of(run, tmp_path)
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
        assert part in text, part


def test_report_of_a_run_that_failed_at_once(tmp_path):
    run = store.create(Workspace(tmp_path).pipeline("mine"))
    run.update(
        RunRecord(status=run_record.FAILED, failure={"error": "No such file", "remedy": "Fix it."})
    )
    text = page_of(run, tmp_path)
    assert "not evaluated: the run failed." in text
    assert "No such file Fix it." in text


def test_report_of_a_killed_run(tmp_path):
    run = store.create(Workspace(tmp_path).pipeline("mine"))
    event = {"time": 1.0, "kind": "node", "node": "Trainer", "state": "running"}
    run.events.write_text(json.dumps(event) + "\n")
    text = page_of(run, tmp_path)
    assert "the run was killed." in text
    assert "Trainer stopped" in text


def test_deleted_artifacts_are_omitted(run, tmp_path):
    (tmp_path / "artifacts" / "predictions").rename(tmp_path / "gone")
    facts = run_report.read_facts(run)
    assert "predictions" not in facts.folders
    assert facts.table is None
