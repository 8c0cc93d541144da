"""Run-time parameters, and the models that the Trainer looks up when it runs."""

import errno
import importlib
import json
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tfx.types.standard_artifacts import Examples, Model, ModelRun, TransformGraph

from regard.components.settings.trainer import CONFIG, RUN, TrainingJob
from regard.components.trainer.executor import TrainerExecutor
from regard.core.errors import DataError, EnvironmentFault, UserError
from regard.pipeline.runners.failures import explain, is_transient


@pytest.fixture
def resolve_job(tmp_path):
    """The job that ``run_fn`` gets for settings and run-time parameters."""

    def artifact(kind):
        instance = kind()
        instance.uri = str(tmp_path / kind.TYPE_NAME)
        return instance

    examples, graph = artifact(Examples), artifact(TransformGraph)
    examples.split_names = '["train", "eval"]'
    for split in ("train", "eval"):
        folder = tmp_path / "Examples" / f"Split-{split}"
        folder.mkdir(parents=True)
        (folder / "data-00000-of-00001.gz").write_bytes(b"rows")
    splits = {
        f"{name}_args": json.dumps({"splits": [split]})
        for name, split in (("train", "train"), ("eval", "eval"))
    }

    def resolve(training, published="", model=None, **parameters):
        config = {
            "task": "translation",
            "model": {},
            "training": {"early_stopping": None, **training},
        }
        custom_config = {CONFIG: config, RUN: {"published": str(published)}}
        fn_args = TrainerExecutor()._GetFnArgs(
            {"examples": [examples], "transform_graph": [graph]},
            {"model": [model or artifact(Model)], "model_run": [artifact(ModelRun)]},
            {**splits, "custom_config": json.dumps(custom_config), **parameters},
        )
        job = TrainingJob.from_fn_args(fn_args)
        assert job.config is fn_args.custom_config[CONFIG]  # parsed once
        assert job.run is fn_args.custom_config[RUN]
        return job

    return resolve


def test_without_parameters_the_compiled_configuration_applies(resolve_job):
    assert resolve_job({}).config.training.max_epochs == 20


def test_parameters_of_a_run(resolve_job):
    config = resolve_job({}, max_epochs=3, seed=5).config
    assert (config.training.max_epochs, config.training.seed) == (3, 5)


def test_a_training_without_a_limit_is_refused(resolve_job):
    with pytest.raises(UserError, match="has no limit"):
        resolve_job({}, max_epochs=0)
    for limit in ({"max_steps": 9}, {"early_stopping": {"patience": 3}}):
        assert resolve_job(limit, max_epochs=0).config.training.max_epochs is None


def publish(folder, version, **record):
    (folder / str(version)).mkdir(parents=True)
    (folder / str(version) / "saved_model.pb").write_bytes(b"graph %d" % version)
    (folder / str(version) / "regard.json").write_text(json.dumps(record))


def test_the_start_is_the_version_in_production_at_run_time(resolve_job, tmp_path):
    published, training = tmp_path / "registry" / "tiny", {"warm_start": {"model": "production"}}
    assert resolve_job(training, published).run.start is None

    publish(published, 1)
    model = Model()
    model.uri = str(tmp_path / "model")
    job = resolve_job(training, published, model)
    assert job.run.start.model == "tiny@1"
    record = json.loads(model.get_string_custom_property("warm_start"))
    assert record["start"] == job.run.start.model_dump()

    # The version that this training produces is not its own start, so a second run resumes.
    publish(published, 2, warm_start=record)
    assert resolve_job(training, published).run == job.run
    other = resolve_job({**training, "seed": 2}, published)
    assert other.run.start.model == "tiny@2"


def test_a_model_that_does_not_exist_is_refused(resolve_job, tmp_path):
    with pytest.raises(UserError) as caught:
        resolve_job({"warm_start": {"model": "old@3"}}, tmp_path / "registry" / "tiny")
    assert caught.value.where == "training.warm_start.model"
    with pytest.raises(UserError) as caught:
        resolve_job({"ensemble": ["old@3"]}, tmp_path / "registry" / "tiny")
    assert caught.value.where == "training.ensemble"


OWN_RUN_FN = """
from pathlib import Path

def run_fn(fn_args):
    folder = Path(fn_args.serving_model_dir, "assets.extra")
    folder.mkdir(parents=True)
    (folder / "contract.json").touch()

def fails(fn_args):
    raise ValueError("no rows")

def without_a_contract(fn_args):
    Path(fn_args.serving_model_dir).mkdir(parents=True)
"""


def run_own(tmp_path, monkeypatch, error):
    """Call a ``run_fn`` of the user's own that raises an error."""

    def run_fn(_):
        raise error

    (tmp_path / "own_errors.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(importlib.import_module("own_errors"), "run_fn", run_fn, raising=False)
    monkeypatch.setattr(TrainerExecutor, "_GetFnArgs", lambda *_: SimpleNamespace())
    TrainerExecutor().Do({}, {}, {"run_fn": "own_errors.run_fn"})


def caused_by(cause):
    error = ValueError("could not write the file")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        caused_by(OSError(errno.ENOSPC, "No space left on device")),
        tf.errors.UnavailableError(None, None, "worker 1 is lost"),
        EnvironmentFault("The connection between the workers is lost."),
    ],
)
def test_a_fault_of_the_machine_in_an_own_run_fn_may_be_retried(tmp_path, monkeypatch, error):
    with pytest.raises(type(error)) as caught:
        run_own(tmp_path, monkeypatch, error)
    assert is_transient(explain(caught.value))


@pytest.mark.parametrize("error", [DataError("too few rows"), ValueError("too few rows")])
def test_a_mistake_in_an_own_run_fn_keeps_its_kind(tmp_path, monkeypatch, error):
    with pytest.raises(UserError) as caught:
        run_own(tmp_path, monkeypatch, error)
    assert caught.value.code == getattr(error, "code", None)
    assert caught.value.where == "training.run_fn"
    assert not is_transient(explain(caught.value))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run_fn", None),
        ("fails", "ValueError: no rows"),
        ("without_a_contract", "without a contract"),
        ("missing", "has no 'missing'"),
    ],
)
def test_a_run_fn_of_ones_own(tmp_path, monkeypatch, name, message):
    (tmp_path / f"own_training_{name}.py").write_text(OWN_RUN_FN)
    monkeypatch.syspath_prepend(tmp_path)
    model = Model()
    model.uri = str(tmp_path / "model")
    serving = tmp_path / "model" / "Format-Serving"
    arguments = SimpleNamespace(serving_model_dir=str(serving), model_run_dir=str(tmp_path))
    monkeypatch.setattr(TrainerExecutor, "_GetFnArgs", lambda *_: arguments)
    properties = {"run_fn": f"own_training_{name}.{name}"}
    if message is None:
        TrainerExecutor().Do({}, {"model": [model]}, properties)
        assert (serving / "assets.extra/contract.json").is_file()
        return
    with pytest.raises(UserError) as error:
        TrainerExecutor().Do({}, {"model": [model]}, properties)
    assert error.value.where == "training.run_fn"
    assert message in error.value.message
