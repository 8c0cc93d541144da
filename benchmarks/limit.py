"""What the machine allows: the rate of matrix products, and the work that a model must do.

The work is what the formulas need for the pieces that there are: a multiplication and an addition
are two operations, attention's products are counted, and causal attention looks at what is before
it alone. Padding is no work, nor are softmaxes, normalisations, activations, dropout, looking up
embeddings, or the optimizer, which all take time. The gradient takes twice the work of the
outputs: a training step is three times what is counted here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

TRAINING = 3  # the outputs, the gradients of the inputs, and those of the weights
SIDE = 2048
_SECONDS = 1.0


def work(model: Mapping[str, Any], vocabulary: int, source: Any, target: Any) -> float:
    """The operations for the outputs of pairs of texts.

    Args:
        model: the YAML's section ``model``; a Transformer, or recurrent with a Luong decoder.
        vocabulary: the number of target pieces.
        source: the pieces of each source, end of sentence counted, ``[pairs]``.
        target: those of each target.
    """
    source, target = (np.asarray(lengths, np.float64) for lengths in (source, target))
    of = _transformer if model["encoder"]["type"] == "transformer" else _luong
    states = of(model, source, target)
    width = model["decoder"].get("units", model["embedding"])
    return float(states.sum() + 2.0 * width * vocabulary * target.sum())


def _transformer(model: Mapping[str, Any], source: Any, target: Any) -> Any:
    """Vaswani et al. 2017, without the softmax layer: the operations of each pair."""
    width = model["embedding"]
    encoder, decoder = model["encoder"], model["decoder"]
    read = source * (8 * width**2 + 4 * width * encoder["feed_forward"])
    read = read + 4 * width * source**2
    written = target * (12 * width**2 + 4 * width * decoder["feed_forward"])
    written = written + 4 * width * (target * (target + 1) / 2 + target * source)
    memory = source * 4 * width**2  # the keys and values of the source, in every layer
    return encoder["layers"] * read + decoder["layers"] * (written + memory)


def _luong(model: Mapping[str, Any], source: Any, target: Any) -> Any:
    """Luong et al. 2015 with the score ``general``, without the softmax layer."""
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
    states = states + source * 2 * memory * units  # the keys, once a sentence
    states = states + 2 * (units + memory) * source * target
    return states + target * 2 * (units + memory) * units  # the attentional state


def _lstm(inputs: int, units: int) -> int:
    return 8 * units * (inputs + units)


def rate(multiply: Callable[[], Any], side: int = SIDE, seconds: float = _SECONDS) -> float:
    """The best rate of a product of two square matrices, in operations a second.

    Args:
        multiply: computes it once, and waits until it is there.
        side: of the matrices.
        seconds: how long to try.
    """
    multiply()
    best, end = float("inf"), time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        multiply()
        best = min(best, time.perf_counter() - began)
    return 2.0 * side**3 / best


def tensorflow_rates() -> dict[str, float]:
    """What TensorFlow reaches in this process, by number format."""
    import tensorflow as tf

    found = {}
    for name in ("float32", "bfloat16"):
        matrix = tf.cast(tf.random.normal([SIDE, SIDE]), name)
        found[name] = rate(lambda matrix=matrix: tf.matmul(matrix, matrix))
    return found


def mean(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What was reached before something was measured, and after it, taken together."""
    return {name: (before[name] + after[name]) / 2 for name in before}
