"""Which columns of a table without names fit the features, by their content."""

from collections.abc import Sequence

from regard.core.features import Feature

SAMPLE_ROWS = 50


def fitting_columns(
    features: Sequence[Feature], rows: Sequence[Sequence[str]]
) -> list[int | None] | None:
    """Return the index of the column of each required feature; None if columns do not fit.

    Texts are the first columns that hold neither numbers nor one value in all rows.

    Args:
        features: the features of a row, in order.
        rows: the cells of rows of a table, as many in each.
    """
    columns = list(zip(*rows, strict=True))
    free = list(range(len(columns)))
    selection: dict[str, int] = {}
    for feature in sorted(features, key=lambda feature: feature.kind.is_text):
        if feature.optional:
            continue
        fits = [i for i in free if all(map(feature.kind.looks_like, columns[i]))]
        if feature.kind.is_text:
            fits.sort(key=lambda i: len(rows) > 2 and len(set(columns[i])) == 1)
        if not fits:
            return None
        selection[feature.name] = fits[0]
        free.remove(fits[0])
    return [selection.get(feature.name) for feature in features]
