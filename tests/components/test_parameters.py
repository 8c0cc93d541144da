"""The settings that a run may set anew."""

import pytest

from components.errors import UserError
from components.parameters import PARAMETERS, applied
from pipeline.config.training import Training

CONFIG = {"training": {"max_epochs": 20, "seed": 17}, "model": {"embedding": 8}}


def test_a_run_s_values_take_the_place_of_the_compiled_ones():
    given = {"seed": 3, "custom_config": "{}", "max_epochs": None}
    assert applied(CONFIG, given) == {**CONFIG, "training": {"max_epochs": 20, "seed": 3}}
    assert CONFIG["training"]["seed"] == 17


def test_without_any_everything_stays():
    assert applied(CONFIG, {"batch_size": 64}) == CONFIG


def test_sections_that_are_not_there_are_left_out():
    assert applied({"name": "m"}, {"seed": 3}) == {"name": "m"}


def test_no_limit_is_zero_and_back():
    parameter = PARAMETERS["max_epochs"]
    assert parameter.compiled({"training": {"max_epochs": None}}) == 0
    assert applied(CONFIG, {"max_epochs": 0})["training"]["max_epochs"] is None
    assert applied(CONFIG, {"seed": 0})["training"]["seed"] == 0


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_is_a_setting_of_the_configuration(name):
    parameter = PARAMETERS[name]
    assert parameter.section == "training"
    assert parameter.key in Training.model_fields


@pytest.mark.parametrize("name", PARAMETERS)
def test_less_than_nothing_is_refused(name):
    with pytest.raises(UserError, match="at least 0; -1 was given"):
        applied(CONFIG, {name: -1})
