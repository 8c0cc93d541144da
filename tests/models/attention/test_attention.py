"""Properties of attention with every pair of score and alignment."""

import keras
import numpy as np
import pytest

from regard.models.attention import ALIGNMENTS, SCORES, Attention
from tests.models.attention import batches
from tests.models.tensors import fill, gradients, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(5)
OPTIONS = {"location": {"max_source": 8}, "top_k": {"k": 2}, "local_m": {"window": 1}}
OPTIONS |= {"local_p": {"window": 2}, "hard": {"training": "reinforce", "seed": 2}}
OPTIONS |= {"low_rank": {"rank": 3}, "thresholded": {"threshold": 0.2}}
# An alias is the same class: once is enough.
KINDS = sorted(ALIGNMENTS)
PAIRS = [(score, alignment) for score in sorted(SCORES) for alignment in KINDS]
# Each score and each alignment once.
EACH = [(score, "soft") for score in sorted(SCORES)]
EACH += [("general", alignment) for alignment in KINDS if alignment != "soft"]
LENGTHS = [5, 2, 0]


def by_label(name):
    return {"type": name, **OPTIONS[name]} if name in OPTIONS else name


def created(score, alignment, **options):
    attention = Attention(by_label(score), by_label(alignment), **options)
    attention.build((None, None, 6), (None, None, 6))
    return fill(attention, RANDOM)


def inputs():
    query = RANDOM.normal(size=(3, 4, 6)).astype("float32")
    memory = RANDOM.normal(size=(3, 5, 6)).astype("float32")
    return query, memory, np.arange(5) < np.array(LENGTHS)[:, None]


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_equals_the_formulas_with_zeros_in_the_padding(score, alignment):
    query, memory, mask = inputs()
    attention = created(score, alignment)
    context, weights = attention(query, memory, mask=mask)
    expected, expected_weights = batches.attention(attention, query, memory, LENGTHS)
    assert_close(numpy(weights), expected_weights)
    assert_close(numpy(context), expected)
    assert (numpy(weights)[~np.broadcast_to(mask[:, None], weights.shape)] == 0).all()
    assert (numpy(context)[2] == 0).all()


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_padding_changes_nothing(score, alignment):
    query, memory, mask = inputs()
    attention = created(score, alignment)
    context, weights = attention(query, memory, mask=mask)
    alone, alone_weights = attention(query[1:2], memory[1:2, :2])
    assert_close(context[1:2], alone)
    assert_close(weights[1:2, :, :2], alone_weights)


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_gradients_are_finite_and_zero_in_masked_rows(score, alignment):
    query, memory, mask = inputs()
    attention = created(score, alignment)

    def value(query, memory):
        return keras.ops.sum(attention(query, memory, mask=mask, training=True)[0])

    result = gradients(value, query, memory, layer=attention)
    assert all(np.isfinite(gradient).all() for gradient in result)
    assert (result[1][~mask] == 0).all()
    assert np.any(result[1])


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize(("score", "alignment"), EACH)
def test_low_precision_stays_finite_and_close(score, alignment, dtype):
    query, memory, mask = inputs()
    exact, rough = created(score, alignment), created(score, alignment, dtype=dtype)
    for ours, theirs in zip(rough.trainable_weights, exact.trainable_weights, strict=True):
        ours.assign(theirs)
    _, weights = exact(query, memory, mask=mask)
    context, rough_weights = rough(query, memory, mask=mask)
    assert keras.backend.standardize_dtype(context.dtype) == dtype.removeprefix("mixed_")
    rough_weights = numpy(rough_weights)
    assert np.isfinite(rough_weights).all()
    assert (rough_weights[1, :, 2:] == 0).all()
    assert (rough_weights[2] == 0).all()
    off = np.abs(rough_weights - numpy(weights)).max(-1)
    # Where two scores are nearly equal, or a window ends, rounding chooses another position.
    assert np.median(off[:2]) < 0.02


def test_low_precision_does_not_overflow():
    query, memory, mask = inputs()
    large = 60.0  # scores of several hundred: exp overflows float16 without float32 inside
    _, weights = Attention("dot")(query * large, memory * large / 10, mask=mask)
    for dtype in ("mixed_float16", "mixed_bfloat16"):
        rough = Attention("dot", dtype=dtype)
        _, result = rough(query * large, memory * large / 10, mask=mask)
        assert np.isfinite(numpy(result)).all()
        assert (numpy(result).argmax(-1)[:2] == numpy(weights).argmax(-1)[:2]).all()


@pytest.mark.parametrize(("score", "alignment"), EACH)
def test_compiled_equals_eager(score, alignment):
    """Forward and backward with XLA."""
    import tensorflow as tf

    query, memory, mask = inputs()
    attention = created(score, alignment)

    def both(query, memory, mask):
        with tf.GradientTape() as tape:
            tape.watch(memory)
            context, _ = attention(query, memory, mask=mask)
        return context, tape.gradient(context, memory)

    arguments = [tf.constant(query), tf.constant(memory), tf.constant(mask)]
    compiled = tf.function(both, jit_compile=True)(*arguments)
    for ours, theirs in zip(compiled, both(*arguments), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("score", "alignment"),
    [*(("general", alignment) for alignment in KINDS), ("location", "soft"), ("concat", "soft")],
)
def test_a_graph_takes_any_lengths(score, alignment):
    import tensorflow as tf

    attention = created(score, alignment)
    floats = tf.TensorSpec((None, None, 6), tf.float32)
    graph = tf.function(
        lambda q, m, k: attention(q, m, mask=k, training=True),
        input_signature=[floats, floats, tf.TensorSpec((None, None), tf.bool)],
    )
    for source in (1, 12):
        memory = RANDOM.normal(size=(2, source, 6)).astype("float32")
        query = RANDOM.normal(size=(2, 3, 6)).astype("float32")
        context, weights = graph(query, memory, np.ones((2, source), bool))
        assert weights.shape == (2, 3, source)
        assert np.isfinite(context).all()


@pytest.mark.parametrize("alignment", KINDS)
def test_single_steps_equal_all_steps_together(alignment):
    query, memory, mask = inputs()
    attention = created("general", alignment)
    prepared = attention.alignment.with_random_key(attention.prepare(memory, mask))
    whole, weights, distribution = attention.attend_with_distribution(
        query, prepared, training=True
    )
    for t in range(4):
        position = np.full((3, 1), t)
        one = attention.attend_with_distribution(
            query[:, t : t + 1], prepared, position, training=True
        )
        for ours, theirs in zip(one, (whole, weights, distribution), strict=True):
            assert_close(ours, theirs[:, t : t + 1])


@pytest.mark.parametrize("alignment", KINDS)
def test_only_rewarded_samples_differ_from_their_distribution(alignment):
    query, memory, mask = inputs()
    attention = created("general", alignment)
    _, weights, distribution = attention.attend_with_distribution(
        query, attention.prepare(memory, mask), training=True
    )
    assert attention.stochastic == (alignment == "hard")
    assert attention.stochastic == bool(np.any(numpy(weights) != numpy(distribution)))
