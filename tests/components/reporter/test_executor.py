import json
import re
from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from regard.components.common import artifact_types
from regard.components.nodes import Reporter
from regard.components.reporter.executor import FILE, ReporterExecutor
from regard.components.reporter.run_facts import ARTIFACTS
from regard.core import events
from tests.components.reporter import sample_runs
from tests.pages import plain

ABOUT = {"name": "mine", "task": "translation", "config": {"name": "mine"}, "fingerprint": "f00"}


def run_reporter(root: Path, omitted: tuple[str, ...] = ()) -> str:
    output = artifact_types.Report()
    output.uri = str(root / "report")
    inputs = {}
    for name in set(ARTIFACTS) - set(omitted):
        artifact = standard_artifacts.ModelRun()
        artifact.uri = str(root / name)
        inputs[name] = [artifact]
    Path(output.uri).mkdir()
    ReporterExecutor().Do(inputs, {"report": [output]}, {"about": json.dumps(ABOUT), "code": ""})
    return plain((Path(output.uri) / FILE).read_text(encoding="utf-8"))


def test_the_page_shows_the_artifacts(tmp_path, monkeypatch):
    sample_runs.text_run(tmp_path)
    steps = {"distillation": "5 of 7 targets translated by deep@1"}
    sample_runs.put(tmp_path, "augmentation", "augmentation.json", {"steps": steps, "models": {}})
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    events.emit("node", node="Trainer", state="running")
    events.emit("node", node="Trainer", state="done", seconds=190.0, peak_bytes=2_000_000_000)
    text = run_reporter(tmp_path)
    assert "reaches BLEU 40.00" in text
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", text)
    assert "f00" in text
    assert "Trainer done 3:10 1.9 GiB" in text
    assert "keras" in text
    assert "distillation 5 of 7 targets translated by deep@1" in text
    note = [event for event, _ in events.read(log)][-1]
    assert note["node"] == "Reporter"
    assert str(tmp_path / "report" / FILE) in note["text"]


@pytest.mark.parametrize("omitted", [("pushed", "serving"), tuple(ARTIFACTS)])
def test_missing_artifacts_are_omitted(tmp_path, omitted, monkeypatch):
    monkeypatch.delenv(events.VARIABLE, raising=False)
    sample_runs.text_run(tmp_path)
    text = run_reporter(tmp_path, omitted)
    assert "is version" not in text
    assert "Pipeline nodes" not in text


def test_the_component_takes_all_artifacts_of_a_report():
    assert set(Reporter.OPTIONAL_INPUTS) == set(ARTIFACTS)
