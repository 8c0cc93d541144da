"""Greedy decoding of batches during the training of a sequence-to-sequence model."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from regard.models.search import GreedySearch
from regard.models.seq2seq import Seq2Seq
from regard.models.tasks.served_model import DecodeFn, with_signature


def greedy_decode_fn(
    model: Seq2Seq,
    source: tf.TensorSpec,
    limits: Callable[[tf.Tensor], tf.Tensor],
    to_outputs: Callable[[tf.Tensor], list[Any]],
) -> DecodeFn:
    """Return the function that decodes batches with ``source`` and ``target``.

    Args:
        model: In float32; its weights may change between calls.
        source: The shape and type of a batch of ``source``.
        limits: Returns the maximum lengths of the outputs for a batch of ``source``, EOS included,
            int32 ``[batch]``.
        to_outputs: Converts padded ids ``[batch, length]`` to outputs.
    """
    greedy = GreedySearch()

    @with_signature([source])
    def run_search(source: tf.Tensor) -> tf.Tensor:
        return model.search(source, greedy, limits(source)).ids[:, 0]

    def decode(batch: Mapping[str, np.ndarray]) -> tuple[list[Any], list[list[Any]]]:
        references = to_outputs(tf.constant(batch["target"]))
        outputs = to_outputs(run_search(tf.constant(batch["source"])))
        return outputs, [[reference] for reference in references]

    return decode
