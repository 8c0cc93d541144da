"""What all configurations of a comparison must share, or their numbers mean different things."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.compare.members import Member
from pipeline.config.errors import show

SHARED = ("task", "data", "tokenizer", "evaluation")


def disagreements(members: Sequence[Member]) -> Iterator[str]:
    """One line for each key in which a configuration differs from the first one.

    Each names the file and line, the key, and both values. And a line where they may learn from
    different spans, since each takes those that are there when its run begins.
    """
    if not members:
        return
    first, wanted = members[0], _shared(members[0])
    if first.config.data.has_spans and first.config.data.spans.last is None:
        place = first.tree.place(("data", "spans"))
        yield f"{place}a comparison needs data.spans.last, or a model trained later has more"
    for member in members[1:]:
        given = _shared(member)
        for path in dict.fromkeys([*wanted, *given]):
            if given.get(path) == wanted.get(path):
                continue
            key = ".".join(path)
            yield (
                f"{member.tree.place(path)}{_told(given, path)}, but {first.label} has "
                f"{_told(wanted, path)}; all models of a comparison need the same {key}"
            )


def _shared(member: Member) -> dict[tuple[str, ...], Any]:
    content = member.config.model_dump(mode="json")
    return {
        path: value
        for section in SHARED
        for path, value in _flat(content[section], (section,)).items()
    }


def _flat(value: Any, path: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
    """The value of every key below a path; a list is one value."""
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {
        inner: item
        for key, part in value.items()
        for inner, item in _flat(part, (*path, key)).items()
    }


def _told(values: dict[tuple[str, ...], Any], path: tuple[str, ...]) -> str:
    return show(values[path]) if path in values else "nothing"
