"""References to environment variables in what is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.components.common.references import resolve_references, restore_references

VARIABLES = {"A": "secret", "B": "secretly", "C": "${A}", "PIN": "123456"}


def test_values_are_replaced_below_their_keys():
    values = {"root": "/x/secret/y", "other": "secret", "list": [{"deep": "a secretly"}], "n": 1}
    references = {("root",): {"A": "secret"}, ("list",): {"A": "secret", "B": "secretly"}}
    recorded = restore_references(values, references)
    assert recorded == {
        "root": "/x/${A}/y",
        "other": "secret",
        "list": [{"deep": "a ${B}"}],
        "n": 1,
    }
    again: dict = {}
    assert resolve_references(recorded, VARIABLES, again) == values
    assert again == {("root",): {"A": "secret"}, ("list", 0, "deep"): {"B": "secretly"}}


def test_numbers_among_the_options_of_beam():
    values = {"beam": {"options": {"pin": 123456, "on": True}}, "n": 123456}
    recorded = restore_references(values, {(): {"PIN": "123456"}})
    assert recorded == {"beam": {"options": {"pin": "${PIN}", "on": True}}, "n": 123456}


def test_missing_variable():
    with pytest.raises(LookupError):
        resolve_references("${NONE}", VARIABLES, {})


TEXTS = st.text("${}A:-secrtly", max_size=20)


@given(st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3), max_size=3))
def test_round_trip(values):
    for references in ({}, {(): VARIABLES}):
        recorded = restore_references(values, references)
        assert resolve_references(recorded, VARIABLES, {}) == values
