"""The operations of a model, compared with counts by hand."""

import numpy as np
import pytest

from benchmarks import hardware_limits
from benchmarks.hardware_limits import best_rate, count_operations

TRANSFORMER = {
    "embedding": 4,
    "encoder": {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 8},
    "decoder": {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8},
}
LUONG = {
    "embedding": 4,
    "encoder": {"type": "recurrent", "layers": 2, "units": 3, "bidirectional": True},
    "decoder": {"type": "luong", "layers": 2, "units": 5, "input_feeding": True},
}


def product(rows, inner, columns):
    """The operations of a matrix product."""
    return 2 * rows * inner * columns


def test_operations_of_a_transformer():
    source, target, width, inner, vocabulary = 3, 5, 4, 8, 11
    attention = 2 * product(source, width, source)  # scores, and weighted sums of values
    block = product(source, width, 3 * width) + product(source, width, width) + attention
    block += product(source, width, inner) + product(source, inner, width)
    # Causal: position t attends to t positions.
    causal = sum(2 * product(1, width, positions) for positions in range(1, target + 1))
    decoder = product(target, width, 3 * width) + product(target, width, width) + causal
    decoder += 2 * product(target, width, width) + product(source, width, 2 * width)
    decoder += 2 * product(target, width, source)
    decoder += product(target, width, inner) + product(target, inner, width)
    softmax = product(target, width, vocabulary)
    operations = count_operations(TRANSFORMER, vocabulary, [source], [target])
    assert operations == 2 * block + decoder + softmax


def test_operations_of_a_recurrent_model():
    source, target, vocabulary = 3, 5, 11
    first = 2 * (product(source, 4, 12) + product(source, 3, 12))  # both directions
    second = 2 * (product(source, 6, 12) + product(source, 3, 12))
    decoder = product(target, 4 + 5, 20) + product(
        target, 5, 20
    )  # inputs with feeding, and the state
    decoder += product(target, 5, 20) + product(target, 5, 20)
    keys = product(source, 6, 5)
    attention = product(target, 5, source) + product(target, source, 6)
    attentional_state, softmax = product(target, 5 + 6, 5), product(target, 5, vocabulary)
    operations = count_operations(LUONG, vocabulary, [source], [target])
    assert operations == first + second + decoder + keys + attention + attentional_state + softmax


@pytest.mark.parametrize("model", [TRANSFORMER, LUONG])
def test_operations_add_up_over_pairs(model):
    separate = [count_operations(model, 7, [s], [t]) for s, t in ((3, 5), (8, 2))]
    assert count_operations(model, 7, np.array([3, 8]), np.array([5, 2])) == sum(separate)


def test_input_feeding_adds_one_product():
    plain = {**LUONG, "decoder": {**LUONG["decoder"], "input_feeding": False}}
    assert count_operations(LUONG, 7, [3], [5]) - count_operations(plain, 7, [3], [5]) == product(
        5, 5, 20
    )


def test_best_rate(monkeypatch):
    # The start; then before and after each product: 3, 1 and 2 seconds.
    times = iter([0.0, 0.0, 3.0, 3.0, 4.0, 4.0, 6.0, 9.0])
    monkeypatch.setattr(hardware_limits.time, "perf_counter", lambda: next(times))
    assert best_rate(lambda: None, side=10, seconds=8.0) == 2 * 10**3 / 1.0
