"""Parse the cells of a row into the values of its features."""

from collections.abc import Sequence
from typing import Any

from regard.components.data.images import Images
from regard.core.features import CellError, Feature, Value


class CellParser:
    """Parses the cells of a row.

    Args:
        features: the features of the row, in order.
        images: checks the images that a row names; None: no checks.
        names: what the file calls each feature, for messages; by default its name.
        from_text: whether every cell is text that has to be parsed, as in a table, or a value
            already, as in JSON.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        images: Images | None = None,
        names: Sequence[str] | None = None,
        from_text: bool = False,
    ):
        self._features = list(features)
        self._names = list(names or [feature.name for feature in features])
        self._images = images
        self._from_text = from_text
        for feature in features:
            if feature.multiple and not feature.kind.has_several:
                raise ValueError(f"{feature.name}: a row has one value of the kind {feature.kind}")
        # Nearly all corpora are plain text, whose cells are their own values.
        self._plain = from_text and all(map(_is_plain, features))

    def __call__(self, cells: Sequence[Any]) -> Sequence[Value]:
        """Return the values of a row; a cell that is None has no value.

        Raises:
            CellError: a cell has no valid value; it counts positions and points from 0.
        """
        if self._plain:
            return cells
        values: list[Any] = []
        column = 0
        try:
            for column, cell in enumerate(cells):
                values.append(self._value(column, cell))
            for column, feature in enumerate(self._features):
                feature.kind.check_in_row(feature, self._names[column], self._features, values)
        except CellError as error:
            error.column = column
            raise
        except RecursionError:
            raise CellError(f"the value of {self._names[column]!r} is nested too deeply") from None
        return values

    def _value(self, column: int, cell: Any) -> Value:
        feature, name = self._features[column], self._names[column]
        if self._from_text and cell is not None:
            is_missing = feature.kind.is_missing(feature, cell)
            cell = None if is_missing else feature.kind.parse(feature, name, cell)
        value = None if cell is None else feature.kind.convert(feature, name, cell)
        if value is None and not feature.optional:
            raise CellError(f"no value for {name!r}")
        if value is not None and feature.kind.names_file and self._images:
            problem = self._images.problem(str(value))
            if problem:
                raise CellError(problem)
        return value


def _is_plain(feature: Feature) -> bool:
    """Return whether the text of a cell is the value."""
    return feature.kind.is_text and not (feature.multiple or feature.optional or feature.links)
