"""What a run is given is held against the configuration that its pipeline was compiled from."""

import json

import pytest

from components.errors import UserError
from pipeline.config import load
from pipeline.kubeflow.given import checked_parameters, configuration_in
from tests.pipeline.kubeflow.pipelines import CONFIG, write_config

KINDS = {
    **dict.fromkeys(("max_epochs", "seed", "span_window"), "NUMBER_INTEGER"),
    **dict.fromkeys(("first_span", "last_span"), "STRING"),
}


def spec_of(folder, config=CONFIG, more="training: {early_stop: null}\n"):
    """As much of a compiled pipeline as matters here."""
    config = load(write_config(folder, more, config.replace("train-*", "train-{SPAN}")))
    record = json.dumps({"config": config.model_dump(mode="json")})
    task = {"inputs": {"parameters": {"record": {"runtimeValue": {"constant": record}}}}}
    known = {name: {"parameterType": kind, "isOptional": True} for name, kind in KINDS.items()}
    definitions = {"inputDefinitions": {"parameters": known}}
    return {"root": {**definitions, "dag": {"tasks": {"Pusher": task}}}}


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        (["max_epochs=0"], "max_epochs: training would never end"),
        (["seed=4294967296"], "seed: must be less than 4294967296"),
        (["span_window=-1"], "span_window: must be at least 0; -1 was given"),
        (["first_span=2026-01-01"], "first_span: a whole number is expected"),
        (["first_span=5", "last_span=3"], "first_span: is after data.spans.last"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, pairs, told):
    with pytest.raises(UserError) as caught:
        checked_parameters(pairs, spec_of(tmp_path))
    assert caught.value.message.startswith(told)
    assert caught.value.where == "--param"


def test_what_can_be_is_given(tmp_path):
    pairs = ["max_epochs=3", "seed=4294967295", "first_span=3", "last_span=", "span_window=0"]
    assert checked_parameters(pairs, spec_of(tmp_path)) == {
        "max_epochs": 3,
        "seed": 2**32 - 1,
        "first_span": "3",
        "last_span": "",
        "span_window": 0,
    }


def test_a_run_that_ends_otherwise_needs_no_limit(tmp_path):
    spec = spec_of(tmp_path, more="training: {max_steps: 5, early_stop: null}\n")
    assert checked_parameters(["max_epochs=0"], spec) == {"max_epochs": 0}


@pytest.mark.parametrize("constant", ["", "no JSON", "[]", '{"config": 5}', 7.0, None])
def test_the_pipelines_of_others_have_no_configuration(tmp_path, constant):
    spec = spec_of(tmp_path)
    record = spec["root"]["dag"]["tasks"]["Pusher"]["inputs"]["parameters"]["record"]
    record["runtimeValue"]["constant"] = constant
    assert configuration_in(spec) == {}
    assert checked_parameters(["seed=-1"], spec) == {"seed": -1}
