"""Texts: UTF-8, perhaps word alignments, or parts of another text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.core.characters import is_blank
from regard.core.features import STRINGS, CellError, Feature, Kind, Value
from regard.core.formatting import truncate
from regard.core.kinds.number import is_number_text

if TYPE_CHECKING:
    import pyarrow as pa

_LINKS = re.compile(r" *([0-9]{1,6}[-p][0-9]{1,6}( +|$))*")


class TextKind(Kind):
    """Texts."""

    name = "text"
    is_text = True
    has_several = True
    identifies_rows = True
    tensor = ("string", "[batch]")
    stored_list = "bytes_list"
    column_depths = (0, 1)
    column_values = "strings"
    column_types = STRINGS
    input_remedy = "Give a text."

    def is_output(self, value: Any) -> bool:
        return isinstance(value, str)

    def looks_like(self, text: str) -> bool:
        return bool(text.strip()) and not is_number_text(text)

    def is_missing(self, feature: Feature, cell: str) -> bool:
        # An empty text is a value; the data checks count it.
        return feature.optional and is_blank(cell)

    def convert(self, feature: Feature, name: str, value: Any) -> Value:
        if isinstance(value, str):
            if feature.links and not _LINKS.fullmatch(value):
                raise CellError(f"{name} {truncate(value)!r} does not have the form 0-0 1-2")
            return [value] if feature.multiple else value
        if not isinstance(value, list):
            expected = "a string" + (" or a list of strings" if feature.multiple else "")
            raise CellError(f"the value of {name!r} is not {expected}")
        for number, item in enumerate(value, 1):
            if not isinstance(item, str):
                raise CellError(f"item {number} of {name!r} is not a string")
        if feature.multiple:
            return value or None
        if feature.links:
            raise CellError(f"the value of {name!r} is not a string")
        if len(value) > 1 and feature.role == "reference":
            message = f"the value of {name!r} is a list of {len(value)} texts, not one text"
            remedy = "write a row for each of several targets, or join the parts of one"
            raise CellError(f"{message}; {remedy}")
        # A list in place of one text holds its parts, such as sentences: line breaks separate them.
        return "\n".join(filter(None, value))

    def check_in_row(
        self, feature: Feature, name: str, features: Sequence[Feature], values: list[Any]
    ) -> None:
        """Check that the texts are in another one; fill in where they begin if the row does not."""
        if feature.part_of is None:
            return
        names = [other.name for other in features]
        texts, whole = values[names.index(feature.name)], values[names.index(feature.part_of)]
        start = next(i for i, other in enumerate(features) if other.begins == feature.name)
        if values[start] is None:
            values[start] = [whole.find(text) for text in texts]
        problem = check_texts(whole, texts, values[start], (feature.part_of, names[start]))
        if problem:
            raise CellError(f"{name}: {problem}")

    def length_unit(self, feature: Feature) -> str | None:
        return "character" if feature.tokenized else None

    def format(self, feature: Feature, values: Sequence[Any]) -> str:
        return " / ".join(values)

    def to_input(self, feature: Feature, values: list[Any]) -> Any:
        if feature.multiple:
            return values
        if values:
            return values[0]
        return None if feature.optional else ""

    def to_argument(self, value: Any) -> str:
        # A text of several sentences may have one on each line; a command takes one line.
        return " ".join(value.split("\n"))

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.string()


def check_texts(
    whole: str, parts: Sequence[str], starts: Sequence[int], names: Sequence[str]
) -> str:
    """Return what is wrong with texts that begin at characters of another text; empty if nothing.

    Args:
        whole: The text that contains the others.
        parts: The texts.
        starts: Where each of them begins.
        names: What the whole text and the starts are called.
    """
    if len(starts) != len(parts):
        return f"{names[1]} has {len(starts)} values for {len(parts)} texts"
    for part, start in zip(parts, starts, strict=True):
        if not part.strip():
            return "the text is empty; rows without one are not supported"
        if part not in whole:
            return f"{truncate(part)!r} does not occur in {names[0]}"
        if start < 0 or not whole.startswith(part, start):
            actual, place = truncate(whole[max(start, 0) :][: len(part)]), truncate(str(start))
            reason = f"{names[0]} has {actual!r} there"
            return f"{names[1]} {place} is not where {truncate(part)!r} begins: {reason}"
    return ""
