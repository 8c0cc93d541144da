"""The keys and the words of pydantic's errors."""

from typing import Annotated, Literal

import pytest
from pydantic import JsonValue, ValidationError

from regard.models.settings.base import ByType, Listed, Section
from regard.models.settings.networks import OneOrList
from regard.models.settings.validation_errors import validation_problems


class Square(Section):
    """A square.

    Attributes:
        side: Length of a side.
    """

    type: Literal["square"] = "square"
    side: float


class Circle(Section):
    type: Literal["circle"] = "circle"
    radius: float = 1.0


Shape = Annotated[Square | Circle, ByType("circle")]


class Limits(Section):
    low: int = 0
    high: int | None = None


class Drawing(Section):
    shapes: OneOrList[Shape] = Circle()
    limits: Limits = Limits()
    by_name: dict[str, Limits] | None = None
    choices: Listed[JsonValue] | None = None
    values: dict[str, JsonValue] = {}


INF = float("inf")


@pytest.mark.parametrize(
    ("values", "key", "parts"),
    [
        ({"shapes": {"side": 3.0}}, "shapes.side", ["type: square"]),
        ({"shapes": [{}, {"side": 3.0}]}, "shapes.1.side", ["type: square"]),
        ({"shapes": {"type": "square"}}, "shapes.side", ["Length of a side."]),
        ({"shapes": {"type": "sqare"}}, "shapes.type", ["'sqare'", "Did you mean square?"]),
        ({"shapes": "circle"}, "shapes", ["'circle'"]),
        ({"limits": {"radius": 1}}, "limits.radius", ["Did you mean shapes.radius?"]),
        ({"limits": {"hihg": 1}}, "limits.hihg", ["Did you mean high?", "low"]),
        ({"limits": {"low": None}}, "limits.low", ["number is expected", "null was"]),
        ({"limits": {"high": "5"}}, "limits.high", ["number or null", "'5'"]),
        ({"by_name": {"a": {"hihg": 1}}}, "by_name.a.hihg", ["Did you mean high?"]),
        ({"choices": [1, INF]}, "choices.1", ["finite"]),
        ({"values": {"float": INF}}, "values.float", ["finite"]),
        ({"values": {"a": {"list": [1, {"b": INF}]}}}, "values.a.list.1.b", ["finite"]),
        ({"low": 1}, "low", ["Did you mean limits.low?"]),
    ],
)
def test_a_problem_has_its_key_and_a_suggestion(values, key, parts):
    with pytest.raises(ValidationError) as caught:
        Drawing.model_validate(values)
    (problem,) = validation_problems(caught.value, Drawing)
    assert ".".join(map(str, problem.path)) == key
    assert all(part in problem.message for part in parts), problem.message


def test_a_section_alone_has_the_keys_and_suggestions_of_the_whole():
    with pytest.raises(ValidationError) as caught:
        Limits.model_validate({"radius": 1})
    (problem,) = validation_problems(caught.value, Drawing, section="limits")
    assert problem.path == ("limits", "radius")
    assert "shapes.radius" in problem.message


def test_explanations_replace_suggestions_and_name_keys_within():
    def explain(path, value):
        yield path, f" explained: {value['b']}"
        yield (*path, "b"), " also explained"

    with pytest.raises(ValidationError) as caught:
        Drawing.model_validate({"a": {"b": 1}})
    first, second = validation_problems(caught.value, Drawing, explain)
    assert (first.path, second.path) == (("a",), ("a", "b"))
    assert first.message.endswith(" explained: 1")
    assert second.message.endswith(" also explained")
