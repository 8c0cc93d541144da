"""Settings that each run on a cluster can change."""

import pytest

from regard.components.common.runtime_parameters import (
    PARAMETERS,
    apply_parameters,
    of_sections,
    parameters_of,
)
from regard.components.settings.data import DataConfig, SpansConfig
from regard.core.errors import UserError
from regard.models.settings.training import TrainingConfig

CONFIG = {"training": {"max_epochs": 20, "seed": 17}, "model": {"embedding": 8}}
DATA = {
    "data": {"root": ".", "spans": {"first": None, "last": 5, "window": None, "test_share": 0.1}}
}


def test_run_values_replace_compiled_ones():
    properties = {"seed": 3, "custom_config": "{}", "max_epochs": None}
    assert apply_parameters(CONFIG, properties) == {
        **CONFIG,
        "training": {"max_epochs": 20, "seed": 3},
    }
    assert CONFIG["training"]["seed"] == 17


def test_other_properties_and_sections_are_ignored():
    assert apply_parameters(CONFIG, {"batch_size": 64}) == CONFIG
    assert apply_parameters({"name": "m"}, {"seed": 3}) == {"name": "m"}


def test_null_has_a_value():
    assert PARAMETERS["max_epochs"].value_in({"training": {"max_epochs": None}}) == 0
    assert apply_parameters(CONFIG, {"max_epochs": 0})["training"]["max_epochs"] is None
    assert apply_parameters(CONFIG, {"seed": 0})["training"]["seed"] == 0
    assert PARAMETERS["first_span"].value_in(DATA) == ""
    assert apply_parameters(DATA, {"first_span": "", "span_window": 0}) == DATA


@pytest.mark.parametrize(
    ("value", "first"), [("3", 3), ("007", 7), ("2026-01-31", "2026-01-31"), ("³", "³")]
)
def test_span_is_a_number_or_a_date(value, first):
    assert apply_parameters(DATA, {"first_span": value})["data"]["spans"]["first"] == first


def test_inner_sections_are_copied():
    changed = apply_parameters(DATA, {"last_span": "9", "span_window": 2.0, "seed": 3})
    assert changed["data"]["spans"] == {"first": None, "last": 9, "window": 2, "test_share": 0.1}
    assert changed["data"]["root"] == "."
    assert DATA["data"]["spans"]["last"] == 5


def test_parameters_without_spans():
    config = {**CONFIG, **DATA}
    assert parameters_of(config, has_spans=False) == {"max_epochs": 20, "seed": 17}
    assert parameters_of(config, has_spans=True) == {
        "max_epochs": 20,
        "seed": 17,
        "first_span": "",
        "last_span": "5",
        "span_window": 0,
    }


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_settings(name):
    path = PARAMETERS[name].path
    section = {"training": TrainingConfig, "data": DataConfig}[path[0]]
    if len(path) == 3:
        assert path[1] == "spans"
        section = SpansConfig
    assert path[-1] in section.model_fields


@pytest.mark.parametrize("name", ["max_epochs", "seed", "span_window"])
def test_negative_values(name):
    with pytest.raises(UserError, match="at least 0; got -1"):
        apply_parameters({**CONFIG, **DATA}, {name: -1})


def test_parameters_of_sections():
    assert set(of_sections({"seed": 1, "last_span": "2"}, "data")) == {"last_span"}
    assert of_sections(None, "data") == {}
