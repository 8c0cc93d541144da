"""Features that are parts of a text, such as the answers in a passage: checks and offsets."""

from __future__ import annotations

from collections.abc import Sequence

from regard.components.common.formatting import truncate


def check_texts(
    whole: str, parts: Sequence[str], starts: Sequence[int], names: Sequence[str]
) -> str:
    """Return what is wrong with texts that begin at characters of another text; empty if nothing.

    Args:
        whole: the text that contains the others.
        parts: the texts.
        starts: where each of them begins.
        names: what the whole text and the starts are called.
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


def check_spans(whole: str, edges: Sequence[int], name: str) -> str:
    """Return what is wrong with parts, given by begin and end; empty if nothing."""
    if len(edges) % 2:
        return "a part has a begin, but no end"
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if not 0 <= begin < end <= len(whole):
            return f"{begin} to {end} is no part of the {len(whole)} characters of {name}"
    return ""
