"""Features that are parts of a text, such as the answers in a passage: checks and offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from regard.components.common.formatting import truncate
from regard.models.tasks.description import Feature


def part_checks(features: Sequence[Feature]) -> list[tuple[int, Callable[[list[Any]], str]]]:
    """Return checks of a row's values, each with the index of the feature that it is about.

    A check returns what is wrong, or an empty text. That of texts also fills in where they begin,
    each at its first occurrence, if the row does not say it.
    """
    index = {feature.name: i for i, feature in enumerate(features)}
    begins = {feature.begins: index[feature.name] for feature in features if feature.begins}
    checks: list[tuple[int, Callable[[list[Any]], str]]] = []
    for i, feature in enumerate(features):
        if feature.part_of is None:
            continue
        whole = index[feature.part_of]
        if feature.kind == "text":
            checks.append((i, _TextCheck(features, whole, i, begins[feature.name])))
        else:
            checks.append((i, _SpanCheck(features, whole, i)))
    return checks


class _TextCheck:
    def __init__(self, features: Sequence[Feature], whole: int, part: int, begins: int):
        self._whole, self._part, self._begins = whole, part, begins
        self._name, self._key = features[whole].name, features[begins].name

    def __call__(self, values: list[Any]) -> str:
        whole, parts, starts = (values[i] for i in (self._whole, self._part, self._begins))
        if starts is None:
            starts = values[self._begins] = [whole.find(part) for part in parts]
        if len(starts) != len(parts):
            return f"{self._key} has {len(starts)} values for {len(parts)} texts"
        for part, start in zip(parts, starts, strict=True):
            if not part.strip():
                return "the text is empty; rows without one are not supported"
            if part not in whole:
                return f"{truncate(part)!r} does not occur in {self._name}"
            if start < 0 or whole[start : start + len(part)] != part:
                actual = truncate(whole[max(start, 0) : max(start, 0) + len(part)])
                there = f"{self._name} has {actual!r} there"
                return f"{self._key} {start} is not where {truncate(part)!r} begins: {there}"
        return ""


class _SpanCheck:
    def __init__(self, features: Sequence[Feature], whole: int, part: int):
        self._whole, self._part, self._name = whole, part, features[whole].name

    def __call__(self, values: list[Any]) -> str:
        length, edges = len(values[self._whole]), values[self._part] or ()
        if len(edges) % 2:
            return "a part has a begin, but no end"
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            if not 0 <= begin < end <= length:
                return f"{begin} to {end} is no part of the {length} characters of {self._name}"
        return ""
