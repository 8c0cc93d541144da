"""Attention within windows equals attention to the whole source."""

import keras
import numpy as np
import pytest

from regard.models.attention import SCORES, Attention
from regard.models.attention.alignments import local
from tests.models.attention import batches
from tests.models.tensors import fill, gradients, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(11)
TARGET, DEPTH = 6, 4
# A source longer than windows, and one that every window reaches over at both ends.
SIZES = [(23, 3, [23, 9, 1, 0]), (5, 4, [5, 3, 1, 0])]
ALIGNMENTS = ["local_m", "local_p"]
every_pair = pytest.mark.parametrize(
    ("score", "alignment"), [(score, each) for score in sorted(SCORES) for each in ALIGNMENTS]
)
every_size = pytest.mark.parametrize(("source", "window", "lengths"), SIZES)


def created(score, alignment, window, **options):
    score = {"type": score, "max_source": 12} if score == "location" else score
    attention = Attention(score, {"type": alignment, "window": window}, **options)
    attention.build((None, None, DEPTH), (None, None, DEPTH))
    return fill(attention, RANDOM)


def inputs(source, lengths):
    query = RANDOM.normal(size=(len(lengths), TARGET, DEPTH)).astype("float32")
    memory = RANDOM.normal(size=(len(lengths), source, DEPTH)).astype("float32")
    position = RANDOM.integers(0, source + 4, size=(len(lengths), TARGET)).astype("int32")
    return query, memory, np.arange(source) < np.array(lengths)[:, None], position


def through(attention, query, prepared, position):
    return local.attend_in_windows(attention.score, attention.alignment, query, prepared, position)


def whole(attention, query, prepared, position=None):
    return attention.attend_with_distribution(query, prepared, position, training=True)[:2]


@every_size
@every_pair
def test_equals_the_formulas(score, alignment, source, window, lengths):
    query, memory, mask, position = inputs(source, lengths)
    attention = created(score, alignment, window)
    prepared = attention.prepare(memory, mask)
    context, weights = through(attention, query, prepared, position)
    expected, expected_weights = batches.attention(attention, query, memory, lengths, position)
    assert_close(numpy(weights), expected_weights)
    assert_close(numpy(context), expected)


@every_size
@every_pair
def test_gradients_equal_those_of_the_whole_source(score, alignment, source, window, lengths):
    """Gradients for the query (it predicts the position of local-p), memory and weights."""
    query, memory, mask, position = inputs(source, lengths)
    attention = created(score, alignment, window)
    taste = RANDOM.normal(size=(len(lengths), TARGET, DEPTH)).astype("float32")

    def of(attend):
        def value(query, memory):
            context, weights = attend(attention, query, attention.prepare(memory, mask), position)
            return keras.ops.sum(context * taste) + keras.ops.sum(weights**2)

        return gradients(value, query, memory, layer=attention)

    for ours, theirs in zip(of(through), of(whole), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_a_mask_with_holes_and_low_precision(alignment, dtype):
    query, memory, _, position = inputs(23, [23] * 3)
    mask = RANDOM.random(size=(3, 23)) < 0.6
    attention = created("general", alignment, 4, dtype=dtype)
    prepared = attention.prepare(keras.ops.cast(memory, attention.compute_dtype), mask)
    query = keras.ops.cast(query, attention.compute_dtype)
    results = (attend(attention, query, prepared, position) for attend in (through, whole))
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        if dtype == "float32":
            assert_close(numpy(ours), numpy(theirs))
        else:
            assert_close(numpy(ours), numpy(theirs), "bfloat16", roundings=4)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_a_graph_of_unknown_sizes_uses_windows_if_they_are_cheaper(alignment):
    """Both ways have equal results, whatever the lengths of the other rows."""
    import tensorflow as tf

    attention = created("general", alignment, 2)
    floats = tf.TensorSpec((None, None, DEPTH), tf.float32)

    @tf.function(input_signature=[floats, floats])
    def graph(query, memory):
        return attention.attend_with_distribution(query, attention.prepare(memory))[:2]

    for source in (4, 60):
        query, memory, _, _ = inputs(source, [source] * 2)
        prepared = attention.prepare(memory)
        assert local.should_use_windows(2, query, prepared) == (source == 60)
        expected = whole(attention, query, prepared)
        for ours, theirs in zip(graph(query, memory), expected, strict=True):
            assert_close(ours, theirs)


def test_positions_outside_the_windows_are_not_read():
    query, memory, mask, _ = inputs(60, [60])
    attention = created("general", "local_m", 2)
    memory[:, 9:] = np.nan
    context, weights = attention.attend_with_distribution(
        query[:, :1], attention.prepare(memory, mask), [[6]]
    )[:2]
    assert np.isfinite(context).all()
    assert np.flatnonzero(weights).tolist() == [4, 5, 6, 7, 8]
