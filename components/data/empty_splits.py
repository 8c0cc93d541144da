"""Why rows cannot be split: too few of them, or too few different values that decide the split."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from regard.components.data.split_assignment import can_decide_split, canonical
from regard.core.features import Feature
from regard.core.formatting import truncate

# With more different values, an empty split is chance.
_FEW_VALUES = 20
_MAX_ROWS = 100_000


def explain_empty_split(
    rows: Iterable[Sequence[Any]], features: Sequence[Feature], column: int
) -> tuple[str, str]:
    """Return the end of a sentence about a split without rows, and how to avoid it.

    Args:
        rows: the values of the rows that are split; at most 100,000 of them are read.
        features: the features of a row.
        column: the index of the feature that decides the split of a row.
    """
    compared = [i for i, feature in enumerate(features) if feature.role != "extra"]
    values: dict[int, set[str | None]] = {i: set() for i in {column, *compared}}
    first: Sequence[Any] = ()
    count = 0
    for row in itertools.islice(rows, _MAX_ROWS):
        count += 1
        first = first or row
        for i, distinct in values.items():
            if len(distinct) <= _FEW_VALUES:
                distinct.add(canonical(row[i]))
        if len(values[column]) > _FEW_VALUES:
            break
    name, different = features[column].name, len(values[column])
    if different > _FEW_VALUES or different == count:
        remedy = "Add rows, choose larger shares or another seed"
        return "", f"{remedy}, or name files for `eval` and `test`."
    amount = f"only {different} different values" if different > 1 else "only one value"
    reason = f". They have {amount} of {name}, and rows with the same {name} are in the same split"
    read = ", ".join(
        f"{features[i].name} {truncate(canonical(first[i]) or '')!r}" for i in compared
    )
    others = [
        feature.name
        for i, feature in enumerate(features)
        if can_decide_split(feature) and len(values[i]) > different
    ]
    steps = ["Check which columns are read (`data.columns`)"]
    steps += [f"set `data.split.by: {others[0]}`"] if others else []
    steps += ["add other rows", "name files for `eval` and `test`"]
    return f"{reason}. The first row has {read}", f"{', '.join(steps[:-1])}, or {steps[-1]}."
