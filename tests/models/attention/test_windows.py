"""Attention within windows equals attention to the whole source."""

import keras
import numpy as np
import pytest

from regard.models.attention import SCORES, Attention
from regard.models.attention.alignments import local
from tests.models.attention import reference

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
    for weight in attention.trainable_weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    return attention


def inputs(source, lengths):
    query = RANDOM.normal(size=(len(lengths), TARGET, DEPTH)).astype("float32")
    memory = RANDOM.normal(size=(len(lengths), source, DEPTH)).astype("float32")
    position = RANDOM.integers(0, source + 4, size=(len(lengths), TARGET)).astype("int32")
    return query, memory, np.arange(source) < np.array(lengths)[:, None], position


def through(attention, query, prepared, position):
    return local.attend_in_windows(attention.score, attention.alignment, query, prepared, position)


def numpy(x, dtype="float64"):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, dtype))


@every_size
@every_pair
def test_equals_the_formulas(score, alignment, source, window, lengths):
    query, memory, mask, position = inputs(source, lengths)
    attention = created(score, alignment, window)
    prepared = attention.prepare(memory, mask)
    context, weights = through(attention, query, prepared, position)
    ours, theirs = (
        [numpy(w) for w in part.trainable_weights]
        for part in (attention.score, attention.alignment)
    )
    valid_mask = [min(length, 12) if score == "location" else length for length in lengths]
    scored = reference.scores(score, query, memory, ours)
    expected = reference.alignment(
        alignment, scored, query, valid_mask, {"window": window}, theirs, position
    )
    np.testing.assert_allclose(numpy(weights), expected, atol=1e-5)
    np.testing.assert_allclose(
        numpy(context), np.einsum("bts,bsd->btd", expected, memory), atol=2e-5
    )


@every_size
@every_pair
def test_gradients_equal_those_of_the_whole_source(score, alignment, source, window, lengths):
    """Gradients for the query (it predicts the position of local-p), memory and weights."""
    import tensorflow as tf

    query, memory, mask, position = inputs(source, lengths)
    attention = created(score, alignment, window)
    arguments = [tf.constant(query), tf.constant(memory)]
    taste = RANDOM.normal(size=(len(lengths), TARGET, DEPTH)).astype("float32")

    def gradients(attend):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            prepared = attention.prepare(arguments[1], mask)
            context, weights = attend(arguments[0], prepared)
            value = tf.reduce_sum(context * taste) + tf.reduce_sum(tf.square(weights))
        watched = [*arguments, *(w.value for w in attention.trainable_weights)]
        return tape.gradient(value, watched, unconnected_gradients="zero")

    near = gradients(lambda query, prepared: through(attention, query, prepared, position))
    whole = gradients(
        lambda query, prepared: attention.attend_with_distribution(
            query, prepared, position, training=True
        )[:2]
    )
    for ours, theirs in zip(near, whole, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs), atol=2e-5
        )


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_a_mask_with_holes_and_low_precision(alignment, dtype):
    query, memory, _, position = inputs(23, [23] * 3)
    mask = RANDOM.random(size=(3, 23)) < 0.6
    attention = created("general", alignment, 4, dtype=dtype)
    prepared = attention.prepare(keras.ops.cast(memory, attention.compute_dtype), mask)
    query = keras.ops.cast(query, attention.compute_dtype)
    near = through(attention, query, prepared, position)
    whole = attention.attend_with_distribution(query, prepared, position, training=True)[:2]
    for ours, theirs in zip(near, whole, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            numpy(ours), numpy(theirs), atol=1e-6 if dtype == "float32" else 0.02
        )


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
        whole = attention.attend_with_distribution(query, prepared, training=True)[:2]
        for ours, theirs in zip(graph(query, memory), whole, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_positions_outside_the_windows_are_not_read():
    query, memory, mask, _ = inputs(60, [60])
    attention = created("general", "local_m", 2)
    memory[:, 9:] = np.nan
    context, weights = attention.attend_with_distribution(
        query[:, :1], attention.prepare(memory, mask), [[6]]
    )[:2]
    assert np.isfinite(context).all()
    assert np.flatnonzero(weights).tolist() == [4, 5, 6, 7, 8]
