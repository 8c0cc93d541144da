"""Which column or key of a file holds which feature."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from components.corpus_gen.problems import Broken
from components.words import counted
from models.tasks.features import Feature

Columns = Mapping[str, int | str]


def places(
    features: Sequence[Feature],
    columns: Columns | None,
    names: Sequence[str],
    width: int,
    path: str,
) -> list[int | None]:
    """Where in a row of a table each feature is, from 0; None for an optional one without column.

    Args:
        features: in the order of the columns, where ``columns`` does not say otherwise.
        columns: the number, from 1, or the name of each feature's column.
        names: those in the header; none for a table without one.
        width: the number of columns of the first row.
        path: of the file, for errors.

    Raises:
        Broken: a feature has no column, or it is not there.
    """
    found = []
    for number, feature in enumerate(features, 1):
        if columns is not None:
            column = _column(columns, feature, path)
        else:
            column = feature.name if names else number
            there = column in names if names else number <= width
            column = column if there or not feature.optional else None
        place = None if column is None else _place(column, feature.name, names, width, path)
        found.append(place)
    return found


def keys(features: Sequence[Feature], columns: Columns | None, path: str) -> list[str | None]:
    """The key or column name of each feature; None for an optional one that has none.

    Raises:
        Broken: a feature has no key, or a number for one.
    """
    if columns is None:
        return [feature.name for feature in features]
    found = [_column(columns, feature, path) for feature in features]
    for name in found:
        if isinstance(name, int):
            raise Broken(
                path,
                f"`data.columns` has the number {name}, but this format knows columns by name",
                "Give the name of the column or key.",
            )
    return found  # type: ignore[return-value]


def near(name: str, names: Sequence[str]) -> str:
    """What there is instead of a name that is not there, as a remedy."""
    like = difflib.get_close_matches(name, names, 1)
    listed = f"The file has {', '.join(names[:20])}."
    return (f"Did you mean {like[0]!r}? " if like else "") + f"{listed} See `data.columns`."


def _column(columns: Columns, feature: Feature, path: str) -> int | str | None:
    if feature.name in columns:
        return columns[feature.name]
    if feature.optional:
        return None
    name = feature.name
    raise Broken(
        path, f"`data.columns` does not say where {name} is", f"Add `{name}: COLUMN` to it."
    )


def _place(column: int | str, name: str, names: Sequence[str], width: int, path: str) -> int:
    if isinstance(column, int):
        if 1 <= column <= width:
            return column - 1
        there = counted(width, "column")
        raise Broken(
            path,
            f"column {column} for {name} is not there: the first row has {there}",
            "Columns are divided by tabs and counted from 1: see `data.columns`.",
            1,
        )
    if column in names:
        return names.index(column)
    if not names:
        raise Broken(
            path,
            f"column {column!r} for {name} is a name, but the file is read without a header",
            "Set `data.header: true`, or give the column's number.",
        )
    raise Broken(path, f"no column is called {column!r}", near(column, names), 1)
