"""Which columns of a table without names fit the features, by their content."""

import json
from collections.abc import Callable, Sequence

from regard.models.tasks.description import Feature

SAMPLE_ROWS = 50
_IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif")


def is_number(text: str) -> bool:
    """Return whether a text is a number, such as an identifier or a score."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_points(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _is_positions(text: str) -> bool:
    return bool(text.strip(" []")) and all(map(str.isdecimal, text.strip(" []").split()))


_TESTS: dict[str, Callable[[str], bool]] = {
    "number": is_number,
    "points": _is_points,
    "positions": _is_positions,
    "image": lambda text: text.strip().lower().endswith(_IMAGES),
    "text": lambda text: bool(text.strip()) and not is_number(text),
}


def fitting_columns(
    features: Sequence[Feature], rows: Sequence[Sequence[str]]
) -> list[int | None] | None:
    """Return the index of the column of each required feature; None if columns do not fit.

    Texts are the first columns that hold neither numbers nor one value in all rows.

    Args:
        features: of a row, in order.
        rows: the cells of rows of a table, as many in each.
    """
    columns = list(zip(*rows, strict=True))
    free = list(range(len(columns)))
    selection: dict[str, int] = {}
    for feature in sorted(features, key=lambda one: one.kind == "text"):
        if feature.optional:
            continue
        fits = [i for i in free if all(map(_TESTS[feature.kind], columns[i]))]
        if feature.kind == "text":
            fits.sort(key=lambda i: len(rows) > 2 and len(set(columns[i])) == 1)
        if not fits:
            return None
        selection[feature.name] = fits[0]
        free.remove(fits[0])
    return [selection.get(feature.name) for feature in features]
