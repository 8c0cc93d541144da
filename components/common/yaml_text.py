"""YAML 1.2 text of plain values."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

__all__ = ["YAMLError", "from_yaml", "to_yaml"]


def to_yaml(value: Any) -> str:
    """Return mappings, lists, texts, numbers, booleans and None as YAML, keys in their order."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.representer.sort_base_mapping_type_on_output = False
    yaml.width = 100
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


def from_yaml(text: str) -> Any:
    """Return the plain value that YAML text contains.

    Raises:
        YAMLError: The text is not valid YAML.
    """
    return YAML(typ="safe", pure=True).load(text)
