"""Features of rows, and what their kinds have in common."""

import json
import pickle

import pytest

from regard.core.features import Feature
from regard.core.kinds import IMAGE, KINDS, POINTS, POSITIONS, TEXT, feature_from_json

FEATURES = [
    Feature("a", TEXT, role="extra", tags=("de", "fr")),
    Feature("image", IMAGE),
    Feature("points", POINTS, min_points=3, dimensions=3),
    Feature("at", POSITIONS, optional=True, part_of="a"),
]
# The text of a cell, and the value that a model takes.
CELLS = {
    "text": ("a cat", "a cat"),
    "number": ("2.5", 2.5),
    "points": ("[[0, 1], [2, 3]]", [[0.0, 1.0], [2.0, 3.0]]),
    "positions": ("1 0", [1, 0]),
    "image": ("a.png", "a.png"),
}


@pytest.mark.parametrize("feature", FEATURES, ids=str)
def test_a_feature_is_the_same_after_json_and_pickle(feature):
    assert feature_from_json(json.loads(json.dumps(feature.to_json()))) == feature
    again = pickle.loads(pickle.dumps(feature))
    assert again == feature
    assert hash(again) == hash(feature)


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ValueError, match="sound"):
        feature_from_json({"name": "a", "kind": "sound"})


@pytest.mark.parametrize("name", KINDS)
def test_a_cell_of_a_table_becomes_a_value(name):
    kind, (cell, expected) = KINDS[name], CELLS[name]
    feature = Feature("a", kind)
    assert kind.looks_like(cell)
    assert not kind.is_missing(feature, cell)
    assert KINDS[name] == kind != next(other for other in KINDS.values() if other.name != name)
    value = kind.convert(feature, "a", kind.parse(feature, "a", cell))
    assert kind.from_cell(feature, value) == expected
    assert kind.is_missing(Feature("a", kind, optional=True), " ")
