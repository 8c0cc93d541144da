"""The preprocessing of a task: raw rows to transformed rows, in the Transform graph."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.tasks.description import Description

# The columns of a batch, and the tokenizers, one per text feature.
Columns = Mapping[str, Any]
Tokenizers = Mapping[str, Any]

# The types of the values of each list of a tf.Example.
STORED_TYPES = {"bytes_list": tf.string, "float_list": tf.float32, "int64_list": tf.int64}


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


def single_values(inputs: Columns, name: str) -> tf.Tensor:
    """Return the only value of each row of a raw feature, as ``first_values`` does.

    Raises:
        InvalidArgumentError: a row has several values (when the graph runs).
    """
    counts = to_ragged(inputs[name]).row_lengths()
    message = f"A row has several values of the feature {name}. Store one value in each row."
    check = tf.debugging.Assert(tf.reduce_all(counts <= 1), [message])
    with tf.control_dependencies([check]):
        return first_values(inputs[name])


def first_values(column: Any) -> tf.Tensor:
    """Return the first value of each row of a raw feature, ``[batch]``.

    A row without a value keeps its place: it has an empty text, the number NaN or the integer -1.
    """
    missing = "" if column.dtype == tf.string else math.nan if column.dtype.is_floating else -1
    return to_ragged(column).to_tensor(missing, shape=[None, 1])[:, 0]


def to_ragged(column: Any) -> tf.RaggedTensor:
    """Return a raw feature as ragged; it is dense if all rows have the same number of values."""
    if isinstance(column, tf.RaggedTensor):
        return column
    if isinstance(column, tf.SparseTensor):
        return tf.RaggedTensor.from_sparse(column)
    return tf.RaggedTensor.from_tensor(column[:, None] if column.shape.rank == 1 else column)
