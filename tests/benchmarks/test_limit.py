"""The work of a model, against counts by hand."""

import numpy as np
import pytest

from benchmarks import limit
from benchmarks.limit import work

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
    """The operations of a product of matrices."""
    return 2 * rows * inner * columns


def test_a_transformer_is_its_products_of_matrices():
    source, target, width, inner, vocabulary = 3, 5, 4, 8, 11
    look = 2 * product(source, width, source)  # the scores, and the sums of the values
    block = product(source, width, 3 * width) + product(source, width, width) + look
    block += product(source, width, inner) + product(source, inner, width)
    # Causal: position t looks at t positions.
    own = sum(2 * product(1, width, seen) for seen in range(1, target + 1))
    written = product(target, width, 3 * width) + product(target, width, width) + own
    written += 2 * product(target, width, width) + product(source, width, 2 * width)
    written += 2 * product(target, width, source)
    written += product(target, width, inner) + product(target, inner, width)
    softmax = product(target, width, vocabulary)
    found = work(TRANSFORMER, vocabulary, [source], [target])
    assert found == 2 * block + written + softmax


def test_a_recurrent_model_is_its_products_of_matrices():
    source, target, vocabulary = 3, 5, 11
    first = 2 * (product(source, 4, 12) + product(source, 3, 12))  # both directions
    second = 2 * (product(source, 6, 12) + product(source, 3, 12))
    written = product(target, 4 + 5, 20) + product(target, 5, 20)  # what is fed in, and the state
    written += product(target, 5, 20) + product(target, 5, 20)
    keys = product(source, 6, 5)
    looks = product(target, 5, source) + product(target, source, 6)
    attentional, softmax = product(target, 5 + 6, 5), product(target, 5, vocabulary)
    found = work(LUONG, vocabulary, [source], [target])
    assert found == first + second + written + keys + looks + attentional + softmax


@pytest.mark.parametrize("model", [TRANSFORMER, LUONG])
def test_pairs_add_up(model):
    apart = [work(model, 7, [s], [t]) for s, t in ((3, 5), (8, 2))]
    assert work(model, 7, np.array([3, 8]), np.array([5, 2])) == sum(apart)


def test_feeding_takes_one_product_more():
    plain = {**LUONG, "decoder": {**LUONG["decoder"], "input_feeding": False}}
    assert work(LUONG, 7, [3], [5]) - work(plain, 7, [3], [5]) == product(5, 5, 20)


def test_the_rate_is_the_best_one(monkeypatch):
    # When it begins; then before and after each product: 3, 1 and 2 seconds.
    times = iter([0.0, 0.0, 3.0, 3.0, 4.0, 4.0, 6.0, 9.0])
    monkeypatch.setattr(limit.time, "perf_counter", lambda: next(times))
    assert limit.rate(lambda: None, side=10, seconds=8.0) == 2 * 10**3 / 1.0
