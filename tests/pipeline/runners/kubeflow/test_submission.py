"""The parameters of a run, alone and together with the configuration of the pipeline."""

import json
import sys

import pytest
from typer.testing import CliRunner

from regard.core.errors import UserError
from regard.pipeline.cli.app import app
from regard.pipeline.config import load
from regard.pipeline.runners.kubeflow import submission
from regard.pipeline.runners.kubeflow.pipeline_file import CompiledPipeline
from regard.pipeline.runners.kubeflow.submission import (
    compiled_config,
    kubeflow_cron,
    parse_parameters,
    prepare_submission,
)
from tests.pipeline.runners.kubeflow.pipelines import CONFIG, write_config

TYPES = {
    **dict.fromkeys(("max_epochs", "seed", "span_window"), "NUMBER_INTEGER"),
    **dict.fromkeys(("first_span", "last_span"), "STRING"),
}


def pipeline_of(record) -> CompiledPipeline:
    """The parts of a compiled pipeline that matter here."""
    task = {"inputs": {"parameters": {"record": {"runtimeValue": {"constant": record}}}}}
    parameters = {name: {"parameterType": kind} for name, kind in TYPES.items()}
    definitions = {"inputDefinitions": {"parameters": parameters}}
    return CompiledPipeline({"root": {**definitions, "dag": {"tasks": {"Pusher": task}}}})


@pytest.fixture
def submit(tmp_path, monkeypatch):
    """Prepares a submission without compiling and validating the pipeline."""

    def run(*pairs, more="training: {early_stopping: null}\n"):
        text = CONFIG.replace("train-*", "train-{SPAN}")
        config = load(write_config(tmp_path, more, text))
        record = json.dumps({"config": config.model_dump(mode="json")})
        pipeline = pipeline_of(record)
        monkeypatch.setattr(submission, "read_pipeline", lambda path: pipeline)
        monkeypatch.setattr(submission, "validate_pipeline", lambda *_: None)
        return prepare_submission(tmp_path / "tiny.yaml", pairs).parameters

    return run


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["max_epochs=0"], "max_epochs: training would never end"),
        (["seed=4294967296"], "seed: must be less than 4294967296"),
        (["span_window=-1"], "data.spans.window: must be at least 0"),
        (["first_span=2026-01-01"], "first_span: a whole number is expected"),
        (["first_span=5", "last_span=3"], "first_span: is after data.spans.last"),
        (["epochs"], "Invalid parameter 'epochs'"),
        (["=3"], "Invalid parameter '=3'"),
        (["seed=3", "seed=4"], "The parameter seed is repeated"),
        (["sede=3"], "The pipeline has no parameter 'sede'"),
        (["seed=three"], "The parameter seed is an integer, not 'three'"),
        (["seed=1.5"], "seed is an integer"),
    ],
)
def test_invalid_parameters_are_refused(submit, pairs, message):
    with pytest.raises(UserError) as caught:
        submit(*pairs)
    assert message in caught.value.message
    assert caught.value.where == "--param"


def test_parameters_are_converted_to_their_types(submit):
    expected = {"max_epochs": 3, "seed": 2**32 - 1, "first_span": "3", "last_span": ""}
    expected |= {"span_window": 0}
    assert submit(*(f"{name}={value}" for name, value in expected.items())) == expected


def test_steps_may_end_the_training_instead_of_epochs(submit):
    more = "training: {max_steps: 5, early_stopping: null}\n"
    assert submit("max_epochs=0", more=more) == {"max_epochs": 0}


@pytest.mark.parametrize("record", ["", "no JSON", "[]", '{"config": 5}', 7.0, None])
def test_a_pipeline_without_our_record_has_no_configuration(record):
    pipeline = pipeline_of(record)
    assert compiled_config(pipeline) == {}
    assert parse_parameters(["seed=-1"], pipeline) == {"seed": -1}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 3 * * *", "0 0 3 * * *"),
        ("0 3 * * 7", "0 0 3 * * 0"),
        ("0 3 * jan-mar mon", "0 0 3 * jan-mar mon"),
        ("@weekly", "0 0 0 * * 0"),
    ],
)
def test_kubeflow_has_six_fields(expression, expected):
    assert kubeflow_cron(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("0 25 * * *", "is not a cron expression"),
        ("0 3 * *", "is not a cron expression"),
        ("", "is not a cron expression"),
        ("0 3 * * 5-7", "Kubeflow numbers Sunday 0"),
    ],
)
def test_expressions_that_kubeflow_does_not_take(expression, message):
    with pytest.raises(UserError, match=message) as caught:
        kubeflow_cron(expression)
    assert caught.value.where == "--cron"


class MissingPackage:
    """An import hook that does not find a package."""

    def __init__(self, name):
        self.name = name

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture(params=["kfp", "kfp_server_api"])
def missing_package(request, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == request.param]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [MissingPackage(request.param), *sys.meta_path])
    return request.param


@pytest.mark.parametrize("command", ["compile", "submit"])
def test_a_missing_extra_is_reported(missing_package, tmp_path, command):
    config = write_config(tmp_path)
    result = CliRunner().invoke(app, [command, str(config)])
    assert isinstance(result.exception, UserError)
    assert f"needs the package {missing_package}," in result.exception.message
    assert "pip install 'regard[kubeflow]'" in result.exception.remedy
