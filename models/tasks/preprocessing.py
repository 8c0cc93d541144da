"""The preprocessing of a task: raw rows to transformed rows, in the Transform graph."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.tasks.description import Description

# The columns of a batch, and the tokenizers, one per text feature.
Columns = Mapping[str, Any]
Tokenizers = Mapping[str, Any]


class Preprocessing(ABC):
    """Converts raw rows to transformed rows, each of which makes one or more training rows.

    Args:
        description: What the task declares about itself.
    """

    def __init__(self, description: Description):
        self.description = description

    @abstractmethod
    def transform(self, inputs: Columns, tokenizers: Tokenizers, settings: Any) -> dict[str, Any]:
        """Convert raw features to the columns that the task's ``Network`` reads.

        Args:
            inputs: A batch of the raw features, dense or sparse.
            tokenizers: One per text feature.
            settings: A section of the class ``description.preprocessing_section``.
        """

    @abstractmethod
    def lengths(self, features: Columns) -> Any:
        """Return the lengths by which training rows share batches.

        Args:
            features: A batch of transformed rows.

        Returns:
            One length for each training row of a transformed row, and 0 if it is incomplete, that
            is if a side is empty; integers ``[batch, (training rows)]``, dense or ragged.
        """


def flat_values(column: Any) -> tf.Tensor:
    """Return all values of a dense or sparse raw feature; ``[batch]`` with one value per row."""
    values = column.values if isinstance(column, tf.SparseTensor) else column
    return tf.reshape(values, [-1])


def to_ragged(column: Any) -> tf.RaggedTensor:
    """Return a raw feature as ragged; it is dense if all rows have the same number of values."""
    if isinstance(column, tf.RaggedTensor):
        return column
    if isinstance(column, tf.SparseTensor):
        return tf.RaggedTensor.from_sparse(column)
    return tf.RaggedTensor.from_tensor(column)
