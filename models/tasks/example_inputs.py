"""A model's inputs in serialized tf.Examples, as CorpusGen and TFX's ExampleGens write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from regard.core.kinds import KINDS
from regard.models.tasks.preprocessing import STORED_TYPES


def parse_inputs(examples: tf.Tensor, inputs: Sequence[Mapping[str, Any]]) -> list[tf.Tensor]:
    """Return the tensors of a model's inputs, in the order of the contract.

    Args:
        examples: Serialized tf.Examples, string ``[batch]``.
        inputs: The inputs as in the contract: each has the name of a feature, and a kind.

    Returns:
        For each input its tensor, and for one with a length also the lengths, int32 ``[batch]``.

    Raises:
        InvalidArgumentError: an example cannot be parsed, lacks a feature or has another type; or
            the numbers of a feature are none, or not whole points.
    """
    parsed = tf.io.parse_example(examples, {entry["name"]: _spec(entry) for entry in inputs})
    tensors: list[tf.Tensor] = []
    for entry in inputs:
        values = parsed[entry["name"]]
        tensors += _pad_list(values, **entry) if KINDS[entry["kind"]].has_length else [values]
    return tensors


def _spec(entry: Mapping[str, Any]) -> Any:
    kind = KINDS[entry["kind"]]
    dtype = STORED_TYPES[kind.stored_list]
    return tf.io.RaggedFeature(dtype) if kind.has_length else tf.io.FixedLenFeature([], dtype)


def _pad_list(
    values: tf.RaggedTensor, name: str, kind: str, dimensions: int = 2
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return flat lists as a padded tensor ``[batch, n]`` or ``[batch, n, dimensions]``."""
    dtype, shape = KINDS[kind].tensor or ("", "")
    lengths = tf.cast(values.row_lengths(), tf.int32)
    message = f"the feature {name} is missing or empty in an example"
    checks = [tf.debugging.Assert(tf.reduce_all(lengths > 0), [message, lengths])]
    has_points = "dimensions" in shape
    if has_points:
        message = f"the length of the feature {name} is not a multiple of {dimensions}"
        is_whole = tf.reduce_all(lengths % dimensions == 0)
        checks.append(tf.debugging.Assert(is_whole, [message, lengths]))
    with tf.control_dependencies(checks):
        dense = values.to_tensor()
    if not has_points:
        return tf.cast(dense, dtype), lengths
    rows, width = tf.unstack(tf.shape(dense))
    points = tf.reshape(dense, [rows, width // dimensions, dimensions])
    return tf.cast(points, dtype), lengths // dimensions
