"""Weights of Regard's by JoeyNMT's names."""

import re

import numpy as np
import pytest

from benchmarks.peers.joeynmt_weights import converted
from models.tasks import get
from tests.benchmarks.tiny import MODEL, TRAINING

PIECES = 11


@pytest.fixture(scope="module", params=[0, 1], ids=["first", "second"])
def weights(request):
    """Keras numbers the names of all models of a process but the first."""
    for _ in range(request.param + 1):
        model = get("translation").build(MODEL, TRAINING, {"source": PIECES, "target": PIECES})
    drawn = np.random.default_rng(3)
    return {
        weight.path: drawn.normal(size=weight.shape).astype(np.float32) for weight in model.weights
    }


@pytest.fixture(scope="module")
def state(weights):
    return converted(weights, MODEL)


def named(weights, end):
    coder, _, rest = end.partition("/")
    numbered = re.compile(rf"(.*{coder}(_\d+)?/)?{rest}" if rest else rf"(.*/)?{end}")
    (found,) = (value for path, value in weights.items() if numbered.fullmatch(path))
    return found


def test_the_unknown_piece_comes_before_the_padding(weights, state):
    table = named(weights, "encoder/embedding/table")
    np.testing.assert_array_equal(state["src_embed.lut.weight"], table[[1, 0, *range(2, PIECES)]])
    bias = named(weights, "logits_bias")
    np.testing.assert_array_equal(
        state["decoder.output_layer.bias"], bias[[1, 0, *range(2, PIECES)]]
    )


def test_one_product_becomes_three(weights, state):
    kernel = named(weights, "encoder/layer_1/attention/project/kernel")
    parts = [state[f"encoder.layers.1.src_src_att.{part}_layer.weight"].T for part in "qkv"]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), kernel)
    bias = named(weights, "decoder/layer_0/cross/project_memory/bias")
    parts = [state[f"decoder.layers.0.src_trg_att.{part}_layer.bias"] for part in "kv"]
    np.testing.assert_array_equal(np.concatenate(parts), bias)


def test_every_weight_has_a_place(weights, state):
    def numbers(arrays):
        return sum(array.size for array in arrays)

    # The one table is there three times.
    table = named(weights, "encoder/embedding/table")
    assert numbers(state.values()) - 2 * table.size == numbers(
        value for path, value in weights.items() if "seed_generator" not in path
    )


def test_a_missing_weight_is_told(weights):
    less = {path: value for path, value in weights.items() if "cross_norm" not in path}
    with pytest.raises(KeyError, match="cross_norm"):
        converted(less, MODEL)
