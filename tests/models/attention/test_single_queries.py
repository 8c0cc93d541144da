"""Attention with one query at a time: its position, the training mode, and layers without weights.

The last test repeats the others on JAX.
"""

import importlib.util
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from regard.models.attention import Attention, MultiHeadAttention, Pointer
from regard.models.attention.alignments.local import LocalMAlignment
from regard.models.attention.scores.perceptron import AdditiveScore
from regard.models.decoders import (
    BahdanauDecoder,
    FeedForwardDecoder,
    LuongDecoder,
    PointerDecoder,
    TransformerDecoder,
)
from regard.models.layers.cells import GRUCell
from regard.models.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from regard.models.noise import gumbel_noise
from tests.models.attention import reference
from tests.models.tensors import fill, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(29)
QUERY = RANDOM.normal(size=(2, 4, 8)).astype("float32")
MEMORY = RANDOM.normal(size=(2, 9, 8)).astype("float32")
KEY = np.array([3, 5], "uint32")
LOCAL = {"type": "local_m", "window": 1}
SAMPLED = {"type": "hard", "inference": "sample", "seed": 2}
HARD = {"type": "hard", "training": "reinforce"}
MESSAGE = r"Pass position=\[\[t\]\]"
# Alignments whose weights depend on the step, and whether in training.
DEPENDENT = [(LOCAL, False), (LOCAL, True), (SAMPLED, False), (HARD, True)]
INDEPENDENT = [("soft", True), ("sparsemax", False), ({"type": "local_p", "window": 2}, False)]
INDEPENDENT += [(HARD, False), (SAMPLED, True)]  # the second draws a key for each call
every_layer = pytest.mark.parametrize("kind", ["attention", "heads"])


def created(kind, alignment, query_length=None):
    options = {"score": "general", "alignment": alignment}
    layer = Attention(**options) if kind == "attention" else MultiHeadAttention(2, 8, **options)
    layer.build((None, query_length, 8), (None, None, 8))
    return fill(layer, np.random.default_rng(1))


def prepared_with_key(layer, training):
    prepared = layer.prepare(MEMORY)
    is_sampled = training and layer.alignment.settings.get("training")
    return {**prepared, "random_key": KEY} if is_sampled else prepared


@every_layer
@pytest.mark.parametrize(("alignment", "training"), DEPENDENT)
def test_a_step_needs_its_position(kind, alignment, training):
    layer = created(kind, alignment)
    prepared = prepared_with_key(layer, training)
    whole = layer.attend_with_distribution(QUERY, prepared, training=training)
    for t in range(4):
        query = QUERY[:, t : t + 1]
        with pytest.raises(ValueError, match=MESSAGE):
            layer.attend_with_distribution(query, prepared, training=training)
        step = layer.attend_with_distribution(query, prepared, [[t]], training)
        for ours, expected in zip(step, whole, strict=True):
            assert_close(numpy(ours), numpy(expected)[..., t : t + 1, :])


@every_layer
@pytest.mark.parametrize(("alignment", "training"), INDEPENDENT)
def test_other_alignments_need_no_position(kind, alignment, training):
    layer = created(kind, alignment)
    prepared = layer.prepare(MEMORY)
    layer.attend_with_distribution(QUERY[:, 2:3], prepared, training=training)
    if alignment is not SAMPLED:
        whole = layer.attend_with_distribution(QUERY, prepared, training=training)
        step = layer.attend_with_distribution(QUERY[:, 2:3], prepared, training=training)
        assert_close(numpy(step[1]), numpy(whole[1])[..., 2:3, :])


@every_layer
def test_a_position_of_another_rank_is_refused(kind):
    layer = created(kind, LOCAL)
    with pytest.raises(ValueError, match=r"position must be .* is \(2,\)"):
        layer.attend_with_distribution(QUERY[:, :1], layer.prepare(MEMORY), [3, 4])


def support(weights):
    """The positions with weight in the first row."""
    return np.flatnonzero(numpy(weights)[0, 0]).tolist()


@every_layer
def test_a_call_with_a_single_query(kind):
    """A layer for targets of any length counts from 0; one for a single query cannot."""
    query = QUERY[:, :1]
    assert support(created(kind, LOCAL)(query, MEMORY)[1]) == [0, 1]
    assert support(created(kind, LOCAL, 4)(query, MEMORY)[1]) == [0, 1]
    single = created(kind, LOCAL, 1)
    with pytest.raises(ValueError, match=MESSAGE):
        single(query, MEMORY)
    assert support(single(query, MEMORY, position=[[5]])[1]) == [4, 5, 6]
    assert created(kind, HARD, 1)(query, MEMORY, training=True)[1].shape == (2, 1, 9)


@every_layer
def test_functional_models_of_known_and_unknown_length(kind):
    def model(length, **arguments):
        query, memory = keras.Input((length, 8)), keras.Input((None, 8))
        layer = created(kind, LOCAL, length)
        return keras.Model([query, memory], layer(query, memory, **arguments)[1])

    assert support(model(None)([QUERY[:, :1], MEMORY])) == [0, 1]
    assert support(model(1, position=np.array([[7]]))([QUERY[:, :1], MEMORY])) == [6, 7, 8]
    with pytest.raises(ValueError, match=r"position=\[\[t\]\]"):
        model(1)


def test_alignments_alone_need_the_position():
    scores = RANDOM.normal(size=(1, 1, 5)).astype("float32")
    with pytest.raises(ValueError, match=MESSAGE):
        LocalMAlignment(window=1)(scores)
    assert support(LocalMAlignment(window=1)(scores, position=[[3]])) == [2, 3, 4]


@pytest.mark.parametrize("make", [SinusoidalPositions, LearnedPositions])
def test_the_position_of_a_single_vector(make):
    layer = make()
    layer.build((None, None, 8))
    whole, single = numpy(layer(QUERY)), make()
    assert_close(numpy(layer(QUERY[:, :1])), whole[:, :1])
    with pytest.raises(ValueError, match=MESSAGE):
        single(QUERY[:, 2:3])
    single.set_weights(layer.get_weights())
    assert_close(numpy(single(QUERY[:, 2:3], np.array([[2]]))), whole[:, 2:3])
    assert_close(numpy(single(QUERY)), whole)
    np.testing.assert_array_equal(NoPositions()(QUERY[:, :1]), QUERY[:, :1])


class Loop(keras.layers.Layer):
    """Attends step by step, and leaves the training mode to Keras."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def call(self, query, memory):
        prepared, outputs = {**self.attention.prepare(memory), "random_key": KEY}, []
        for t in range(query.shape[1]):
            step = query[:, t : t + 1]
            outputs.append(self.attention.attend_with_distribution(step, prepared, [[t]])[1])
        return keras.ops.concatenate(outputs, axis=-2)


def test_the_training_mode_is_that_of_the_call_which_is_running():
    layer = created("attention", HARD)
    inputs = keras.Input((4, 8)), keras.Input((9, 8))
    model = keras.Model(inputs, Loop(layer)(*inputs))
    scores = numpy(layer.score(QUERY, MEMORY))
    best, sampled = (numpy(model([QUERY, MEMORY], training=each)) for each in (False, True))
    row, step = np.arange(2)[:, None, None], np.arange(4)[:, None]
    noise = numpy(gumbel_noise(1, *KEY, row, step, np.arange(9)))
    for b, t in np.ndindex(2, 4):
        assert_close(best[b, t], reference.hard(scores[b, t]))
        assert_close(sampled[b, t], reference.sample(scores[b, t], noise[b, t]))
    assert (best != sampled).any()
    prepared = {**layer.prepare(MEMORY), "random_key": KEY}
    outside = layer.attend_with_distribution(QUERY, prepared)[1]
    assert_close(numpy(outside), best)
    explicit = layer.attend_with_distribution(QUERY, prepared, training=True)[1]
    assert_close(numpy(explicit), sampled)


def test_heads_sample_in_the_training_of_a_model():
    layer = created("heads", HARD)
    inputs = keras.Input((4, 8)), keras.Input((9, 8))
    model = keras.Model(inputs, Loop(layer)(*inputs))
    prepared = {**layer.prepare(MEMORY), "random_key": KEY}
    for training in (False, True):
        expected = layer.attend_with_distribution(QUERY, prepared, training=training)[1]
        assert_close(numpy(model([QUERY, MEMORY], training=training)), numpy(expected))


def test_methods_before_build_name_it():
    calls = [
        (lambda: Attention().prepare(MEMORY), r"Attention .*build\(query_shape, memory_shape\)"),
        (lambda: Attention("dot").prepare(MEMORY), r"build\(query_shape, memory_shape\)"),
        (lambda: MultiHeadAttention(2, 8).prepare(MEMORY), r"build\(query_shape, memory_shape\)"),
        (lambda: Pointer().prepare(MEMORY), r"Pointer .*build\(query_shape, memory_shape\)"),
    ]
    for kind in (BahdanauDecoder, LuongDecoder, FeedForwardDecoder):
        calls.append((lambda kind=kind: start(kind(9, 8, 0, attention={})), r"build\(\)"))
    calls.append((lambda: start(TransformerDecoder(9, 8, 0, embedding=8)), r"build\(\)"))
    calls.append((lambda: start(PointerDecoder(8)), r"build\(\)"))
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()


def start(decoder):
    return decoder.start({"values": MEMORY, "mask": np.ones((2, 9), bool)}, max_length=3)


def test_missing_weights_before_build_name_it():
    calls = [
        (lambda: AdditiveScore().prepare(MEMORY), r"build\(query_shape, keys_shape\)"),
        (lambda: GRUCell(4).project(MEMORY), r"build\(inputs_shape\)"),
        (lambda: MultiHeadAttention(2, 8).step(QUERY[:, 0], {}, QUERY, 0), "build"),
    ]
    for call, message in calls:
        with pytest.raises(AttributeError, match=message):
            call()
    layer = created("attention", "soft")
    with pytest.raises(AttributeError, match=r"no attribute 'unknown'$"):
        _ = layer.unknown
    assert not hasattr(Attention(), "unknown")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_on_jax():
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compiling takes most of the time
    command = [sys.executable, "-m", "pytest", "-q", "-x", __file__, "-k", "not jax"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
