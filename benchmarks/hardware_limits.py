"""The rate of matrix products on this machine, and the operations that a model requires.

Counted are the matrix products for real tokens, including those of attention; a multiplication and
an addition are two operations, and causal attention covers the previous positions only. Padding,
softmax, normalization, activations, dropout, embedding lookups and the optimizer are not counted,
although they take time. The gradient requires twice the operations of the forward pass, so a
training step is three times what is counted here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

TRAINING_FACTOR = 3  # forward pass, gradients of the inputs, gradients of the weights
SIDE = 2048
_SECONDS = 1.0


def count_operations(model: Mapping[str, Any], vocabulary: int, source: Any, target: Any) -> float:
    """The operations of the forward pass over pairs of texts.

    Args:
        model: the section ``model``; a Transformer, or a recurrent model with a Luong decoder.
        vocabulary: the size of the target vocabulary.
        source: ``[pairs]``, the tokens of each source, including EOS.
        target: ``[pairs]``, the same for the targets.
    """
    source, target = (np.asarray(lengths, np.float64) for lengths in (source, target))
    count = _transformer if model["encoder"]["type"] == "transformer" else _luong
    operations = count(model, source, target)
    width = model["decoder"].get("units", model["embedding"])
    return float(operations.sum() + 2.0 * width * vocabulary * target.sum())


def _transformer(model: Mapping[str, Any], source: Any, target: Any) -> Any:
    """Vaswani et al. 2017, without the softmax layer: ``[pairs]``."""
    width = model["embedding"]
    encoder, decoder = model["encoder"], model["decoder"]
    encoding = source * (8 * width**2 + 4 * width * encoder["feed_forward"])
    encoding = encoding + 4 * width * source**2
    decoding = target * (12 * width**2 + 4 * width * decoder["feed_forward"])
    decoding = decoding + 4 * width * (target * (target + 1) / 2 + target * source)
    memory = source * 4 * width**2  # keys and values of the source, in every layer
    return encoder["layers"] * encoding + decoder["layers"] * (decoding + memory)


def _luong(model: Mapping[str, Any], source: Any, target: Any) -> Any:
    """Luong et al. 2015 with the score ``general``, without the softmax layer: ``[pairs]``."""
    encoder, decoder, depth = model["encoder"], model["decoder"], model["embedding"]
    directions, states = 1 + encoder["bidirectional"], 0.0
    for _ in range(encoder["layers"]):
        states = states + source * directions * _lstm(depth, encoder["units"])
        depth = directions * encoder["units"]
    memory, units = depth, decoder["units"]
    depth = model["embedding"] + units * decoder["input_feeding"]
    for _ in range(decoder["layers"]):
        states = states + target * _lstm(depth, units)
        depth = units
    states = states + source * 2 * memory * units  # keys, once per sentence
    states = states + 2 * (units + memory) * source * target
    return states + target * 2 * (units + memory) * units  # the attentional state


def _lstm(inputs: int, units: int) -> int:
    return 8 * units * (inputs + units)


def best_rate(multiply: Callable[[], Any], side: int = SIDE, seconds: float = _SECONDS) -> float:
    """The best rate of a product of two square matrices, in operations per second.

    Args:
        multiply: computes the product once, synchronously.
        side: the rows and columns of the matrices.
        seconds: the duration of the measurement.
    """
    multiply()
    best, end = float("inf"), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        multiply()
        best = min(best, time.perf_counter() - start)
    return 2.0 * side**3 / best


def tensorflow_rates() -> dict[str, float]:
    """The rates of TensorFlow in this process, by number format."""
    import tensorflow as tf

    rates = {}
    for name in ("float32", "bfloat16"):
        matrix = tf.cast(tf.random.normal([SIDE, SIDE]), name)
        rates[name] = best_rate(lambda matrix=matrix: tf.matmul(matrix, matrix))
    return rates


def mean_rates(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The mean of the rates before and after a measurement."""
    return {name: (before[name] + after[name]) / 2 for name in before}
