"""Trackers; those of MLflow need the package mlflow-skinny."""

import contextlib
import json
import os
import socket
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from regard import load_config, run
from regard.components.common.run_record import RunRecord
from regard.core import events
from regard.core.errors import UserError
from regard.pipeline.config import tracking as section
from regard.pipeline.config.tracking import TrackingConfig
from regard.pipeline.runs import store, supervise
from regard.pipeline.runs.launch import resolved_yaml
from regard.pipeline.runs.supervise import Ending
from regard.pipeline.runs.tracking import record_run, tracked_run
from regard.pipeline.workspace import Workspace

SECRET = "hunter2hunter2"
HISTORY = [
    {"step": 10, "epoch": 1, "seconds": 2.0, "learning_rate": 0.01, "tokens_per_second": 900.0,
     "train_loss": 2.5, "loss": 2.0, "perplexity": 7.4},
    {"step": 20, "epoch": 2, "seconds": 4.5, "learning_rate": 0.01, "tokens_per_second": 950.0,
     "loss": 1.0, "perplexity": 2.7},
]  # fmt: skip


@pytest.fixture
def installed(monkeypatch):
    """Make `regard validate` believe that every tracker is installed."""
    monkeypatch.setattr(section.importlib.util, "find_spec", lambda name: True)


def load(tmp_path, monkeypatch, **mlflow):
    monkeypatch.setenv("TRAIN", SECRET)
    (tmp_path / SECRET).write_text("a\tA\n")
    data = {"root": str(tmp_path), "train": "${TRAIN}", "format": "tsv"}
    slices = {"slices": {"thresholds": {"oov=0.1+": {"bleu": 1.0}}}}
    tracking = {"mlflow": mlflow} if mlflow else {}
    values = {"name": "tiny", "data": data, "tracking": tracking, "evaluation": slices}
    return load_config(values)


def finished_run(tmp_path, config, pusher="done", **record):
    """Write the folder of a finished run with a published version and a report."""
    run = store.create(Workspace(tmp_path / "home").pipeline("tiny"))
    run.config.write_text(resolved_yaml(config))
    version = tmp_path / "registry" / "tiny" / "3"
    for folder, name, content in (
        (tmp_path / "trained", "training.json", json.dumps({"steps": 20, "history": HISTORY})),
        (tmp_path / "reported", "report.html", "<!doctype html><p>a report"),
        (version, "regard.json", json.dumps({"run": run.id})),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    trained = {"model_run": str(tmp_path / "trained")}
    report = {"report": str(tmp_path / "reported")}
    pushed = {"pushed": 1, "pushed_version": "3", "pushed_destination": str(version)}
    properties = {"pushed_model": pushed}
    events.write(run.events, "node", node="Trainer", state="done", outputs=trained)
    events.write(run.events, "node", node="Pusher", state=pusher, properties=properties)
    events.write(run.events, "node", node="Reporter", state="done", outputs=report)
    scores = [{"name": "bleu", "value": 33.5}, {"name": "aer", "value": None}]
    started = 1_700_000_000.0
    fields = {"status": "succeeded", "started": started, "ended": started + 60.0, "scores": scores}
    run.update(RunRecord(**{**fields, "pushed_version": "3", "reason": "Passed.", **record}))
    return run


def test_a_missing_package_is_refused_with_the_fix(tmp_path, monkeypatch):
    monkeypatch.setattr(section.importlib.util, "find_spec", lambda name: None)
    load(tmp_path, monkeypatch)
    with pytest.raises(UserError) as error:
        load(tmp_path, monkeypatch, uri="http://localhost:5000")
    expected = 'tracking.mlflow: needs the package mlflow; pip install "regard[mlflow]"'
    assert error.value.message == expected


@pytest.mark.parametrize(
    "uri", ["mlruns", "sqlite:///mlflow.db", "file:mlruns", "", None, "http://me:secret@host:5000"]
)
def test_an_address_that_cannot_work_is_refused(tmp_path, monkeypatch, installed, uri):
    with pytest.raises(UserError, match=r"tracking\.mlflow\.uri: .*"):
        load(tmp_path, monkeypatch, uri=uri)


def test_facts_of_a_run(tmp_path, monkeypatch, installed):
    config = load(tmp_path, monkeypatch, uri="http://localhost:5000")
    facts = tracked_run(finished_run(tmp_path, config))
    assert facts.parameters["data.train"] == "${TRAIN}"
    assert SECRET not in str(facts.parameters)
    assert facts.parameters["training.batch_tokens"] == str(config.training.batch_tokens)
    assert facts.parameters["search.type"] == "beam"
    assert facts.parameters["augmentation"] == "null"
    metrics = {(name, step): (value, when) for name, value, when, step in facts.metrics}
    assert metrics["eval/perplexity", 20] == (2.7, 1_700_000_004.5)
    assert metrics["train/loss", 10] == (2.5, 1_700_000_002.0)
    assert metrics["test/bleu", 20] == (33.5, 1_700_000_060.0)
    assert {name for name, _ in metrics} == {
        "train/loss", "train/learning_rate", "train/tokens_per_second", "eval/loss",
        "eval/perplexity", "test/bleu",
    }  # fmt: skip
    assert facts.report.name == "report.html"
    assert facts.published == tmp_path / "registry/tiny/3"
    cached = tracked_run(finished_run(tmp_path, config, pusher="cached"))
    assert cached.published is None  # another run published and recorded it


def test_facts_of_a_run_that_failed_early(tmp_path, monkeypatch):
    run = store.create(Workspace(tmp_path / "home").pipeline("tiny"))
    run.config.write_text(resolved_yaml(load(tmp_path, monkeypatch)))
    run.update(RunRecord(status="failed", ended=time.time(), failure={"error": "e"}))
    facts = tracked_run(run)
    assert (facts.metrics, facts.report, facts.published) == ([], None, None)
    assert facts.parameters["name"] == "tiny"


def fake_mlflow(tmp_path, monkeypatch, code):
    """Replace the package mlflow in child processes by a module with this code."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mlflow.py").write_text(textwrap.dedent(code))
    paths = [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def messages(tmp_path, monkeypatch, uri="http://localhost:1", **options):
    config = load(tmp_path, monkeypatch, uri=uri)
    run = finished_run(tmp_path, config)
    return run, list(record_run(run, config.tracking, **options))


def test_a_failure_of_the_tracker_is_a_warning(tmp_path, monkeypatch, installed):
    fake_mlflow(tmp_path, monkeypatch, "raise RuntimeError('the disk is full' + 900 * '!')")
    run, (message,) = messages(tmp_path, monkeypatch)
    expected = (
        "mlflow: warning: the run is not recorded completely: RuntimeError: the disk is full!!!"
    )
    assert message.startswith(expected)
    assert len(message) < 660
    assert "Traceback" in (run.directory / "mlflow.txt").read_text()


def test_a_tracker_that_does_not_answer_is_stopped(tmp_path, monkeypatch, installed):
    fake_mlflow(tmp_path, monkeypatch, "import time; time.sleep(10**6)")
    before = psutil.Process().children(recursive=True)
    _, (message,) = messages(tmp_path, monkeypatch, seconds=1.0)
    assert message == "mlflow: warning: the run is not recorded completely: no answer within 1 s"
    assert set(psutil.Process().children(recursive=True)) <= set(before)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_tracker_that_cannot_start_or_is_interrupted_does_not_fail_the_run(
    tmp_path, monkeypatch, installed, error
):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("regard.pipeline.runs.tracking.ChildProcess", fail)
    _, (message,) = messages(tmp_path, monkeypatch)
    reason = str(error) or "interrupted"
    assert message == f"mlflow: warning: the run is not recorded completely: {reason}"


def test_a_tracker_that_is_killed_is_a_warning(tmp_path, monkeypatch, installed):
    fake_mlflow(tmp_path, monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    _, (message,) = messages(tmp_path, monkeypatch)
    assert message.endswith("was killed by signal 9, probably because memory ran out")


def test_without_a_tracker_nothing_is_started(tmp_path, monkeypatch):
    run = finished_run(tmp_path, load(tmp_path, monkeypatch))
    assert list(record_run(run, TrackingConfig())) == []


def test_mlflow_records_everything(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow import MlflowClient

    uri = f"file:{tmp_path}/mlruns"
    run, (message,) = messages(tmp_path, monkeypatch, uri=uri, seconds=400.0)
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("tiny")
    (recorded,) = client.search_runs([experiment.experiment_id])
    info, data = recorded.info, recorded.data
    assert message == f"mlflow: recorded as run {info.run_id} of experiment tiny"
    assert (info.run_name, info.status) == (run.id, "FINISHED")
    assert (info.start_time, info.end_time) == (1_700_000_000_000, 1_700_000_060_000)
    threshold = "evaluation.slices.thresholds.oov_0.1_.bleu"  # MLflow refuses = and +
    assert data.params.pop(threshold) == "1.0"
    expected = dict(tracked_run(run).parameters)
    del expected["evaluation.slices.thresholds.oov=0.1+.bleu"]
    assert data.params == expected
    assert data.metrics["test/bleu"] == 33.5
    curve = client.get_metric_history(info.run_id, "eval/loss")
    assert [(one.step, one.value, one.timestamp) for one in curve] == [
        (10, 2.0, 1_700_000_002_000), (20, 1.0, 1_700_000_004_500)
    ]  # fmt: skip
    assert data.tags["regard.pushed_version"] == "3"
    assert {one.path for one in client.list_artifacts(info.run_id)} == {"report.html", "model"}
    (version,) = client.search_model_versions("name='tiny'")
    assert (version.run_id, version.tags["regard.pushed_version"]) == (info.run_id, "3")
    assert (Path(version.source.removeprefix("file://")) / "regard.json").is_file()

    # A second run adds to the same experiment and model; a failed one publishes nothing.
    config = load(tmp_path, monkeypatch, uri=uri, experiment="tiny")
    list(record_run(finished_run(tmp_path, config), config.tracking))
    failure = {"status": "failed", "failure": {"error": "e"}, "pushed_version": None}
    list(record_run(finished_run(tmp_path, config, **failure), config.tracking))
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(one.info.status for one in runs) == ["FAILED", "FINISHED", "FINISHED"]
    assert len(client.search_model_versions("name='tiny'")) == 2


def test_a_server_that_is_down_is_a_warning(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))  # without listen: connections are refused
        uri = f"http://127.0.0.1:{one.getsockname()[1]}"
        _, (message,) = messages(tmp_path, monkeypatch, uri=uri, seconds=400.0)
    assert message.startswith("mlflow: warning: the run is not recorded completely: ")
    assert "refused" in message


@pytest.mark.parametrize(
    ("ending", "states", "is_recorded"),
    [
        (Ending(0, False), ["done"], True),
        (Ending(0, False), ["cached"], False),
        (Ending(0, False), ["cached", "done"], True),
        (Ending(1, False), ["failed"], True),
        (Ending(130, True), ["running"], False),
    ],
)
def test_runs_that_did_something_are_recorded(
    tmp_path, monkeypatch, installed, capsys, ending, states, is_recorded
):
    """`regard run`, and so a schedule, records a run after its end, when its record is complete."""

    def run_worker(command, run, state, *_):
        for number, name in enumerate(states):
            event = {"kind": "node", "node": f"Node{number}", "state": name, "error": "e"}
            state.apply(event)
        state.nodes = {name: node for name, node in state.nodes.items() if "Node" in name}
        return ending

    def record(run, tracking):
        assert tracking.mlflow.uri == "http://localhost:1"
        assert run.record().ended > run.record().started
        return ["mlflow: recorded"]

    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(supervise, "supervise", run_worker)
    monkeypatch.setattr("regard.pipeline.runs.launch.record_run", record)
    config = load(tmp_path, monkeypatch, uri="http://localhost:1")
    with contextlib.suppress(RuntimeError, KeyboardInterrupt):
        run(config)
    assert ("mlflow: recorded" in capsys.readouterr().err) == is_recorded
