"""The values of a row as tf.Examples hold them, a list for each feature, and how they compare."""

import itertools
from collections.abc import Sequence
from typing import Any

from regard.components.checks.base import RowTexts, TextNames
from regard.components.data.images import Images
from regard.components.data.split_assignment import canonical
from regard.components.data.target_overlap import hash64
from regard.components.data.text_analysis import normalize
from regard.core.characters import is_blank
from regard.core.features import Feature
from regard.core.kinds.image import ImageFile


class ComparedValues:
    """Selects what checks compare from the values of rows.

    Args:
        features: the features of a row, in order.

    Attributes:
        columns: the indices of all features but extra ones.
        texts: the names of the text features among them by index.
        text_names: the same names by role.
    """

    def __init__(self, features: Sequence[Feature]):
        self.columns = [i for i, feature in enumerate(features) if feature.role != "extra"]
        self.texts = {i: features[i].name for i in self.columns if features[i].kind.is_text}
        self._inputs = [i for i in self.columns if features[i].role == "input"]
        self._tags = [i for i, feature in enumerate(features) if feature.tags]
        self._text_inputs = [i for i in self._inputs if i in self.texts]
        self.text_names = TextNames.of(features)

    def row_texts(self, values: Sequence[Any]) -> RowTexts:
        """Return the texts of a row."""
        return RowTexts(self.text_names, {name: values[i] for i, name in self.texts.items()})

    def row_hash(self, values: Sequence[Any]) -> int:
        """Return 64 bits that stand for a row."""
        return hash_values([values[i] for i in (*self.columns, *self._tags)])

    def input_hash(self, values: Sequence[Any]) -> int:
        """Return 64 bits that stand for the inputs of a row, and its tag."""
        return hash_values([values[i] for i in (*self._inputs, *self._tags)])

    def input_text(self, values: Sequence[Any]) -> str:
        """Return the inputs as one text; empty if they are empty, or not all texts.

        A tag and a zero byte come first: texts with different tags are never near duplicates.
        """
        if self._text_inputs != self._inputs:
            return ""
        texts = itertools.chain.from_iterable(values[i] for i in self._inputs)
        joined = "\n".join(map(normalize, texts))
        if is_blank(joined):
            return ""
        tags = itertools.chain.from_iterable(values[i] for i in self._tags)
        return "".join(f"{tag}\0" for tag in tags) + joined.replace("\0", " ")


def value_lists(
    features: Sequence[Feature], row: Sequence[Any], images: Images | None = None
) -> list[list[Any]]:
    """Return the values of each feature of a row; a missing one has none.

    Args:
        features: the features of the row.
        row: as ``CellParser`` returns it.
        images: reads the images; None: their content is empty.
    """
    lists = list(map(_to_list, row))
    for i, feature in enumerate(features):
        if feature.kind.names_file:
            lists[i] = [ImageFile(path, images.read(path) if images else b"") for path in lists[i]]
    return lists


def _to_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def hash_values(features: Sequence[Sequence[Any]]) -> int:
    """Return 64 bits that stand for the values of several features."""
    contents = list(map(_value_bytes, features))
    # The lengths separate the contents.
    return hash64(b"".join([b"%d:%b" % (len(part), part) for part in contents]))


def _value_bytes(values: Sequence[Any]) -> bytes:
    """Return bytes that are the same for the same values of a feature."""
    if values and isinstance(values[0], ImageFile):
        return b"".join(image.content for image in values)
    return (canonical(list(values)) or "").encode("utf-8")
