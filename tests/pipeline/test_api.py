"""The Python API, with a stand-in for the worker; tests/test_notebook.py runs a real pipeline."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from regard.pipeline import UserError, load_config, load_model, predict, run
from regard.pipeline.config.recorded import recorded_config
from regard.pipeline.runs import store, supervise
from regard.pipeline.workspace import Workspace
from tests import fake_models, fake_tasks
from tests.processes import wait_for

FAKE = str(Path(__file__).with_name("runs") / "fake_worker.py")
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


def test_import_loads_nothing_else():
    code = "import sys, regard.pipeline; print(*(set(sys.modules) & {'pydantic', 'tensorflow'}))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("\n", "")


def test_names_of_the_package():
    import regard.pipeline

    assert all(getattr(regard.pipeline, name).__doc__ for name in regard.pipeline.__all__)
    with pytest.raises(AttributeError, match=r"'regard\.pipeline' has no attribute 'train'"):
        _ = regard.pipeline.train


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
    assert repr(result).count("\n") == 0
    assert len(repr(result)) < 400
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


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The root of a registry: a model that reverses texts in capitals, and one of two texts."""
    root = tmp_path_factory.mktemp("models")
    fake_models.save(fake_models.Reverser(), root / "reverser" / "1")
    fake_models.save(fake_tasks.Matcher(), root / "matcher" / "1")
    return root


def test_predict(models, tmp_path, monkeypatch):
    path = models / "reverser" / "1"
    first, empty, third = predict(path, ["abc", "", "de"])
    assert (first.hypothesis, empty, third.hypothesis) == ("CBA", None, "ED")
    assert isinstance(first.score, float)
    assert first.attention is None
    with pytest.raises(UserError, match=r"inputs\[1\]: 2 values, but the model has 1 input"):
        predict(path, ["abc", ("d", "e")])
    with pytest.raises(UserError, match="one text"):
        predict(path, "abc")

    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    (tmp_path / "registry").symlink_to(models)
    model = load_model("reverser@1")
    (detailed,) = predict(model, ["abc"], attention=True)
    outputs, inputs, weights = detailed.attention
    assert (len(outputs), len(inputs)) == weights.shape
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-5)


def test_predict_with_two_inputs(models):
    model = load_model(models / "matcher" / "1")
    equal, other = predict(model, [("a", "a"), ["a", "b"]])
    assert equal.hypothesis > other.hypothesis
    with pytest.raises(UserError, match="1 value, but the model has 2 inputs"):
        predict(model, ["a"])
