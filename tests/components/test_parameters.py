"""The settings that a run may set anew."""

import pytest

from components.errors import UserError
from components.parameters import PARAMETERS, applied, of_sections, parameters_of
from pipeline.config.data import Data, Spans
from pipeline.config.training import Training

CONFIG = {"training": {"max_epochs": 20, "seed": 17}, "model": {"embedding": 8}}
DATA = {
    "data": {"root": ".", "spans": {"first": None, "last": 5, "window": None, "test_share": 0.1}}
}


def test_a_run_s_values_take_the_place_of_the_compiled_ones():
    given = {"seed": 3, "custom_config": "{}", "max_epochs": None}
    assert applied(CONFIG, given) == {**CONFIG, "training": {"max_epochs": 20, "seed": 3}}
    assert CONFIG["training"]["seed"] == 17


def test_without_any_everything_stays():
    assert applied(CONFIG, {"batch_size": 64}) == CONFIG


def test_sections_that_are_not_there_are_left_out():
    assert applied({"name": "m"}, {"seed": 3}) == {"name": "m"}


def test_nothing_has_a_value_that_stands_for_it():
    assert PARAMETERS["max_epochs"].compiled({"training": {"max_epochs": None}}) == 0
    assert applied(CONFIG, {"max_epochs": 0})["training"]["max_epochs"] is None
    assert applied(CONFIG, {"seed": 0})["training"]["seed"] == 0
    assert PARAMETERS["first_span"].compiled(DATA) == ""
    assert applied(DATA, {"first_span": "", "span_window": 0}) == DATA


@pytest.mark.parametrize(
    ("given", "first"), [("3", 3), ("007", 7), ("2026-01-31", "2026-01-31"), ("³", "³")]
)
def test_a_span_is_a_number_or_a_date(given, first):
    assert applied(DATA, {"first_span": given})["data"]["spans"]["first"] == first


def test_what_is_further_in_is_changed_in_a_copy():
    made = applied(DATA, {"last_span": "9", "span_window": 2.0, "seed": 3})
    assert made["data"]["spans"] == {"first": None, "last": 9, "window": 2, "test_share": 0.1}
    assert made["data"]["root"] == "."
    assert DATA["data"]["spans"]["last"] == 5


def test_a_configuration_without_spans_has_none_to_choose():
    config = {**CONFIG, **DATA}
    assert parameters_of(config, spans=False) == {"max_epochs": 20, "seed": 17}
    assert parameters_of(config, spans=True) == {
        "max_epochs": 20,
        "seed": 17,
        "first_span": "",
        "last_span": "5",
        "span_window": 0,
    }


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_is_a_setting_of_the_configuration(name):
    path = PARAMETERS[name].path
    section = {"training": Training, "data": Data}[path[0]]
    if len(path) == 3:
        assert path[1] == "spans"
        section = Spans
    assert path[-1] in section.model_fields


@pytest.mark.parametrize("name", ["max_epochs", "seed", "span_window"])
def test_less_than_nothing_is_refused(name):
    with pytest.raises(UserError, match="at least 0; -1 was given"):
        applied({**CONFIG, **DATA}, {name: -1})


def test_a_component_takes_those_of_its_sections():
    assert set(of_sections({"seed": 1, "last_span": "2"}, "data")) == {"last_span"}
    assert of_sections(None, "data") == {}
