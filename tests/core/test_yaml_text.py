"""YAML text of plain values."""

import pytest

from regard.core.yaml_text import YAMLError, from_yaml, to_yaml


def test_values_survive_in_their_order():
    value = {
        "z": {"list": [1, 2.5, None, True], "empty": {}},
        "a": ["no", "null", "1e-3", "2026-11-20", "ä: b", "${X}", "", "two\nlines", "x" * 300],
        "m": 1e-9,
    }
    text = to_yaml(value)
    assert from_yaml(text) == value
    assert list(from_yaml(text)) == ["z", "a", "m"]
    assert "ä" in text


def test_invalid_yaml_is_an_error():
    with pytest.raises(YAMLError):
        from_yaml("a: [1")
