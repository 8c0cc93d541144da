"""Conversion of weights to JoeyNMT's names."""

import re

import numpy as np
import pytest

from benchmarks.peers.joeynmt_weights import convert_weights
from regard.models.settings.training import TrainingConfig
from regard.models.tasks import get_network
from tests.benchmarks.tiny_transformer import MODEL, TRAINING

VOCABULARY_SIZE = 11


@pytest.fixture(scope="module", params=[0, 1], ids=["first", "second"])
def weights(request):
    """Keras numbers the names of all models of a process except the first."""
    for _ in range(request.param + 1):
        task = get_network("translation")
        model = task.build(
            task.description.model.model_validate(MODEL),
            TrainingConfig.model_validate(TRAINING),
            {"source": VOCABULARY_SIZE, "target": VOCABULARY_SIZE},
        )
    random = np.random.default_rng(3)
    return {
        weight.path: random.normal(size=weight.shape).astype(np.float32) for weight in model.weights
    }


@pytest.fixture(scope="module")
def state(weights):
    return convert_weights(weights, MODEL)


def find_weight(weights, end):
    coder, _, rest = end.partition("/")
    numbered = re.compile(rf"(.*{coder}(_\d+)?/)?{rest}" if rest else rf"(.*/)?{end}")
    (value,) = (value for path, value in weights.items() if numbered.fullmatch(path))
    return value


def test_unk_comes_before_pad(weights, state):
    table = find_weight(weights, "encoder/embedding/table")
    np.testing.assert_array_equal(
        state["src_embed.lut.weight"], table[[1, 0, *range(2, VOCABULARY_SIZE)]]
    )
    bias = find_weight(weights, "logits_bias")
    np.testing.assert_array_equal(
        state["decoder.output_layer.bias"], bias[[1, 0, *range(2, VOCABULARY_SIZE)]]
    )


def test_joint_projections_are_split(weights, state):
    kernel = find_weight(weights, "encoder/layer_1/attention/project/kernel")
    parts = [state[f"encoder.layers.1.src_src_att.{part}_layer.weight"].T for part in "qkv"]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), kernel)
    bias = find_weight(weights, "decoder/layer_0/cross/project_memory/bias")
    parts = [state[f"decoder.layers.0.src_trg_att.{part}_layer.bias"] for part in "kv"]
    np.testing.assert_array_equal(np.concatenate(parts), bias)


def test_all_weights_are_converted(weights, state):
    def total_size(arrays):
        return sum(array.size for array in arrays)

    # The embedding table is there three times.
    table = find_weight(weights, "encoder/embedding/table")
    assert total_size(state.values()) - 2 * table.size == total_size(
        value for path, value in weights.items() if "seed_generator" not in path
    )


def test_a_missing_weight_is_an_error(weights):
    incomplete = {path: value for path, value in weights.items() if "cross_norm" not in path}
    with pytest.raises(KeyError, match="cross_norm"):
        convert_weights(incomplete, MODEL)
