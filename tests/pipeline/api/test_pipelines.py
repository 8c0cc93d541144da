"""Pipelines from Python, with a stand-in for the worker; a notebook runs a real pipeline."""

import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from regard import (
    UserError,
    compare,
    load_config,
    report,
    run,
    run_schedule,
    schedule,
    tune,
    validate,
)
from regard.core.errors import ConfigError
from regard.pipeline.api import pipelines
from regard.pipeline.compare import jobs, plots
from regard.pipeline.config import load
from regard.pipeline.config.recorded import recorded_config
from regard.pipeline.runs import store, supervise
from regard.pipeline.scheduling.state import read_state
from regard.pipeline.workspace import Workspace
from tests.processes import wait_for

FAKE = str(Path(__file__).resolve().parents[1] / "runs" / "fake_worker.py")
VALUES = {
    "name": "tiny",
    "data": {"train": "train.tsv", "eval": "train.tsv", "test": "train.tsv"},
    "tokenizer": {"type": "char", "vocab_size": 20, "vocab_limit": "soft"},
}


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Return a function that makes the worker end in a way; see ``fake_worker``."""
    (tmp_path / "train.tsv").write_text("a\tA\nb\tB\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))

    def end_with(how):
        monkeypatch.setattr(supervise, "worker_command", lambda run: [sys.executable, FAKE, how])

    return end_with


def test_configuration_of_a_mapping_and_of_its_file_are_equal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.yaml"
    path.write_text("name: tiny\ndata: {root: '${FOLDER:-data}', train: train.tsv}\n")
    values = {"name": "tiny", "data": {"root": Path("data"), "train": "train.tsv"}}
    loaded = [load_config(path), load_config(str(path)), load_config(values)]
    assert len({config.digest() for config in loaded}) == 1
    assert loaded[2].data.root == str(tmp_path / "data")
    monkeypatch.setenv("FOLDER", "other")
    values["data"]["root"] = "${FOLDER}"
    assert load_config(values).digest() == load_config(path).digest() != loaded[0].digest()


def test_problems_of_a_mapping_name_their_keys():
    with pytest.raises(UserError) as error:
        load_config({**VALUES, "trainnig": {}, "search": {"beam_size": 0}})
    first, second = sorted(error.value.message.splitlines())
    assert first.startswith("search.beam_size: ")
    assert second.startswith("trainnig: unknown key. Did you mean training?")
    with pytest.raises(UserError, match="comparison of several models"):
        load_config({"base": {}, "models": {}})


def test_run_returns_the_result_and_prints_lines(worker, capsys, tmp_path):
    worker("ok")
    config = load_config(VALUES)
    result = run(config)
    assert (result.status, result.version, result.model) == ("succeeded", "3", Path("/r/tiny/3"))
    assert (result.metrics, result.history, result.report) == ({}, [], None)
    name = f"tiny/{result.run.id}"
    assert repr(result) == f"RunResult({name!r}, status='succeeded', metrics={{}}, version='3')"
    record = result.run.record()
    assert record.config == str(result.run.config)
    assert recorded_config(result.run).digest() == config.digest()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"tiny  run {result.run.id}"
    assert "✓ Trainer 2.0 s" in lines
    assert not [line for line in lines if "\x1b" in line]


def test_given_values_are_recorded(worker, tmp_path):
    worker("user")
    path = tmp_path / "tiny.yaml"
    path.write_text("name: tiny\ndata: {train: train.tsv, eval: train.tsv, test: train.tsv}\n")
    config = load_config(path).with_values({"training.max_epochs": 3})
    with pytest.raises(UserError):
        run(config)
    recorded = store.find(Workspace.from_environment(), "tiny")
    record = recorded.record()
    assert (record.config, record.values) == (str(path), ["training.max_epochs=3"])
    assert recorded.settings()["training"]["max_epochs"] == 3


def test_run_of_a_file(worker, tmp_path):
    worker("not-blessed")
    path = tmp_path / "tiny.yaml"
    path.write_text("name: tiny\ndata: {train: train.tsv, eval: train.tsv, test: train.tsv}\n")
    result = run(str(path), last="pusher")
    assert (result.status, result.version, result.model) == ("not blessed", None, Path("/m"))
    assert result.run.record().config == str(path)
    assert result.run.record().last == "Pusher"


def test_failures_are_errors(worker):
    config = load_config(VALUES)
    worker("user")
    with pytest.raises(UserError, match="Trainer failed: the batch is too large") as error:
        run(config)
    assert (error.value.where, error.value.remedy) == ("training.batch_tokens", "Make it smaller.")
    assert isinstance(error.value, ConfigError)
    worker("crash")
    with pytest.raises(RuntimeError, match=r"Trainer failed: .*SIGSEGV\nLog: .*log\.txt"):
        run(config)
    with pytest.raises(UserError, match=r"Trainre.*\n.*Trainer"):
        run(config, first="Trainre")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_worker_and_the_handlers_return(worker, number):
    worker("slow")
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    logs = Workspace.from_environment().pipeline("tiny").runs

    def interrupt():
        wait_for(lambda: any("is busy" in log.read_text() for log in logs.glob("*/log.txt")))
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match="Another call resumes"):
        run(load_config(VALUES))
    thread.join()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_run_in_a_thread(worker):
    worker("ok")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run, load_config(VALUES)).result().status == "succeeded"


POINTS = {
    "name": "sorting",
    "task": "pointer",
    "data": {"train": "points.tsv", "eval": "points.tsv", "test": "points.tsv"},
}


def test_validations_of_different_tasks_in_one_process(worker, tmp_path):
    (tmp_path / "points.tsv").write_text("[[0, 1], [1, 0]]\t[0, 1]\n" * 3)
    translation, pointer = load_config(VALUES), load_config(POINTS)
    first = validate(translation)
    second = validate(pointer)
    assert first.rows == {"train": 2, "eval": 2, "test": 2}
    assert second.rows == {"train": 3, "eval": 3, "test": 3}
    assert first == validate(translation)
    assert first.first_rows != second.first_rows
    assert first.files["train"] == [str(tmp_path / "train.tsv")]
    assert repr(second).startswith("Validation(name='sorting', models=None, rows={'train': 3,")
    with pytest.raises(UserError, match=r"missing\.tsv"):
        validate(translation.with_values({"data.train": "missing.tsv"}))


def test_validation_of_a_comparison(worker, tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(json.dumps({"name": "m", "base": VALUES, "models": {"a": {}, "b": {}}}))
    result = validate(path)
    assert (result.name, result.models, result.rows["train"]) == ("m", 2, 2)


def test_report_of_a_run(worker, tmp_path):
    worker("ok")
    result = run(load_config(VALUES))
    path = report(result, tmp_path / "r.html")
    assert path.read_text() == report("tiny").read_text()
    assert report(result) == result.run.directory / "report.html"
    with pytest.raises(UserError, match="Unknown run 'other'"):
        report("other")


def test_plan_of_a_schedule(worker, tmp_path):
    config = load_config({**VALUES, "schedule": {"every": "1h"}})
    plan = schedule(config)
    assert (plan.name, plan.should_run, plan.process) == ("tiny", True, None)
    assert len(plan.next) == 5
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("once", [True, False])
def test_a_schedule_runs_until_it_is_stopped(worker, tmp_path, monkeypatch, capsys, once):
    def fake_command(path):
        return [sys.executable, "-m", "tests.pipeline.scheduling.fake_run", str(path)]

    monkeypatch.setattr(pipelines, "run_command", fake_command)
    original = load_config({**VALUES, "schedule": {"every": "1h"}})
    config = original.with_values({"training.seed": 7})
    folder = tmp_path / "home" / "pipelines" / "tiny" / "schedule"
    folder.mkdir(parents=True)
    (folder / "plan").write_text("not blessed\n")
    if not once:  # Ctrl-C after the run

        def interrupt(daemon, seconds):
            if read_state(folder).history:
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(pipelines.ScheduleDaemon, "sleep", interrupt)
    (attempt,) = run_schedule(config, once=once)
    assert (attempt.status, attempt.exit_status) == ("not blessed", 3)
    assert load(folder / "config.yaml") == config  # which the run reads
    output = capsys.readouterr().out
    assert f"run {attempt.run}: not pushed" in output
    assert ("stopped" in output) != once
    assert [one.run for one in schedule(config).attempts] == [attempt.run]


@pytest.mark.parametrize("once", [True, False])
def test_a_schedule_needs_the_main_thread(worker, tmp_path, once):
    config = load_config({**VALUES, "schedule": {"every": "1h"}})
    with ThreadPoolExecutor() as threads:
        error = threads.submit(run_schedule, config, once=once).exception()
    assert isinstance(error, UserError)
    assert error.remedy
    assert not (tmp_path / "home").exists()


def test_search_needs_a_section(worker):
    with pytest.raises(UserError, match="no section tune"):
        tune(load_config(VALUES))


def test_failed_search_is_an_error(worker, tmp_path):
    space = {"search_space": {"training.learning_rate": {"log": [0.001, 0.1]}}}
    config = load_config({**VALUES, "tune": space})
    worker("user")
    with pytest.raises(UserError, match="the batch is too large"):
        tune(config, tmp_path / "out.yaml")
    assert not (tmp_path / "out.yaml").exists()


def test_compare_returns_the_results(worker, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "job_command", lambda config: [sys.executable, "-c", ""])
    monkeypatch.setattr(plots, "write_plots", lambda *_: [])
    small = load_config(VALUES)
    large = small.with_values({"name": "large", "training.seed": 3})
    results = compare([small, large], "sizes", only=["large"])
    assert [(model.label, model.state) for model in results.models] == [
        ("tiny", "waiting"),
        ("large", "waiting"),
    ]
    assert repr(results).startswith("ComparisonResults('sizes', models={'tiny': 'waiting', ")
    assert results.directory == str(tmp_path / "home" / "compare" / "sizes")
    large_config = load_config(f"{results.directory}/configs/large.yaml")
    assert (large_config.name, large_config.training.seed) == ("sizes-large", 3)
    with pytest.raises(UserError, match="Unknown model 'huge'"):
        compare([small, large], only=["huge"])
