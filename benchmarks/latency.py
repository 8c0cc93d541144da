"""Throughput in batches and latency of single texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypedDict

PredictFn = Callable[[Sequence[str]], list[str]]


class Measurement(TypedDict):
    """The result of ``measure``.

    Attributes:
        seconds: the duration of each pass.
        outputs: the outputs of the last pass.
        latencies: the latencies of single texts, in seconds.
        same_alone: the share of single texts with the same output as in a batch.
    """

    seconds: list[float]
    outputs: list[str]
    latencies: list[float]
    same_alone: float


def measure(predict: PredictFn, texts: Sequence[str], passes: int, single: int) -> Measurement:
    """Predict all texts, then some texts one by one.

    Args:
        predict: returns the outputs of any number of texts.
        texts: the inputs.
        passes: over all texts, after a warm-up with about a hundred of them.
        single: the number of texts to predict one by one, evenly spread.
    """
    predict(texts[:: max(1, len(texts) // 100)])
    seconds = []
    for _ in range(passes):
        start = time.perf_counter()
        outputs = predict(texts)
        seconds.append(time.perf_counter() - start)
    sample = texts[:: max(1, len(texts) // single)][:single] if single else []
    latencies, same = [], 0
    for text in [*sample[:3], *sample]:
        start = time.perf_counter()
        (output,) = predict([text])
        latencies.append(time.perf_counter() - start)
        same += output == outputs[texts.index(text)]
    return {
        "seconds": seconds,
        "outputs": outputs,
        "latencies": latencies[len(latencies) - len(sample) :],
        "same_alone": same / max(1, len(latencies)),
    }


def in_batches(predict: PredictFn, size: int) -> PredictFn:
    """Predict in batches of ``size`` texts, in the given order."""

    def predict_all(texts: Sequence[str]) -> list[str]:
        batches = [texts[first : first + size] for first in range(0, len(texts), size)]
        return [text for batch in batches for text in predict(batch)]

    return predict_all
