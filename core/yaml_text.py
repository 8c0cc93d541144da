"""YAML 1.2 text of plain values."""

import io
from collections.abc import Iterable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

__all__ = ["YAMLError", "find_excess", "from_yaml", "to_yaml"]

MAX_VALUES, MAX_DEPTH = 100_000, 64


def to_yaml(value: Any) -> str:
    """Return mappings, lists, texts, numbers, booleans and None as YAML, keys in their order."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.representer.sort_base_mapping_type_on_output = False
    yaml.width = 100
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


def find_excess(events: Iterable[Any]) -> tuple[int, str] | None:
    """Return the line where YAML exceeds a limit, and the reason; None for an acceptable text.

    Aliases multiply: a file of 400 bytes may stand for billions of values.

    Args:
        events: the events of PyYAML or ruamel.yaml; nothing has been built from them.
    """
    sizes: dict[str | None, int] = {}
    sections: list[tuple[str | None, int]] = [(None, 0)]
    for event in events:
        kind, anchor, added = type(event).__name__, getattr(event, "anchor", None), 1
        if kind.endswith("StartEvent"):
            sections.append((anchor, 0))
        elif kind.endswith("EndEvent"):
            anchor, size = sections.pop()
            sizes[anchor] = added = size + 1
        elif kind == "AliasEvent":
            is_inside_itself = any(anchor == outer for outer, _ in sections)
            added = MAX_VALUES if is_inside_itself else sizes.get(anchor, 1)
        sections[-1] = sections[-1][0], sections[-1][1] + added
        if len(sections) > MAX_DEPTH:
            return event.start_mark.line + 1, f"values are nested more than {MAX_DEPTH} deep"
        if sections[-1][1] > MAX_VALUES:
            message = f"there are more than {MAX_VALUES:,} values, with all aliases"
            return event.start_mark.line + 1, message
    return None


def from_yaml(text: str) -> Any:
    """Return the plain value that YAML text contains.

    Raises:
        YAMLError: The text is not valid YAML.
    """
    return YAML(typ="safe", pure=True).load(text)
