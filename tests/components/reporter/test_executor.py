from __future__ import annotations

import json
from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from components import artifacts, events
from components.reporter.component import ReporterSpec
from components.reporter.executor import FILE, ReporterExecutor
from components.reporter.facts import ARTIFACTS
from tests.components.reporter import runs
from tests.pages import plain

ABOUT = {"name": "mine", "task": "translation", "config": {"name": "mine"}, "fingerprint": "f00"}


def report(root: Path, left_out: tuple[str, ...] = ()) -> str:
    made = artifacts.Report()
    made.uri = str(root / "report")
    inputs = {}
    for name in set(ARTIFACTS) - set(left_out):
        artifact = standard_artifacts.ModelRun()
        artifact.uri = str(root / name)
        inputs[name] = [artifact]
    Path(made.uri).mkdir()
    ReporterExecutor().Do(inputs, {"report": [made]}, {"about": json.dumps(ABOUT), "code": ""})
    return plain((Path(made.uri) / FILE).read_text(encoding="utf-8"))


def test_the_page_is_made_of_the_artifacts(tmp_path, monkeypatch):
    runs.text_run(tmp_path)
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    events.emit("node", node="Trainer", state="running")
    events.emit("node", node="Trainer", state="done", seconds=190.0, peak_bytes=2_000_000_000)
    told = report(tmp_path)
    assert "reaches BLEU 40.00" in told
    assert "f00" in told
    assert "Trainer done 3 min 10 s 1.9 GiB" in told
    assert "keras" in told
    note = [event for event, _ in events.read(log)][-1]
    assert note["node"] == "Reporter"
    assert str(tmp_path / "report" / FILE) in note["text"]


@pytest.mark.parametrize("left_out", [("pushed", "serving"), tuple(ARTIFACTS)])
def test_what_is_not_there_is_left_out(tmp_path, left_out, monkeypatch):
    monkeypatch.delenv(events.VARIABLE, raising=False)
    runs.text_run(tmp_path)
    told = report(tmp_path, left_out)
    assert "pushed as version" not in told
    assert "Nodes" not in told


def test_the_graph_can_give_it_all_that_a_report_reads():
    assert set(ReporterSpec.INPUTS) == set(ARTIFACTS)
