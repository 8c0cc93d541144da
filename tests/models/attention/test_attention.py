"""Properties of attention with every pair of score and alignment."""

import keras
import numpy as np
import pytest

from regard.models.attention import ALIGNMENTS, SCORES, Attention
from tests.models.attention import reference

RANDOM = np.random.default_rng(5)
OPTIONS = {"location": {"max_source": 8}, "top_k": {"k": 2}, "local_m": {"window": 1}}
OPTIONS |= {"local_p": {"window": 2}, "hard": {"expectation": 0.0, "seed": 2}}
# An alias is the same class: once is enough.
KINDS = sorted({kind: name for name, kind in reversed(ALIGNMENTS.items())}.values())
PAIRS = [(score, alignment) for score in sorted(SCORES) for alignment in KINDS]
LENGTHS = [5, 2, 0]


def by_label(name):
    return {"type": name, **OPTIONS[name]} if name in OPTIONS else name


def created(score, alignment, depth=6, **options):
    """Attention with random weights."""
    attention = Attention(by_label(score), by_label(alignment), **options)
    attention.build((None, None, depth), (None, None, depth))
    for weight in attention.trainable_weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    return attention


def inputs(depth=6):
    query = RANDOM.normal(size=(3, 4, depth)).astype("float32")
    memory = RANDOM.normal(size=(3, 5, depth)).astype("float32")
    return query, memory, np.arange(5) < np.array(LENGTHS)[:, None]


def numpy(x, dtype="float64"):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, dtype))


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_equals_the_formulas_with_zeros_in_the_padding(score, alignment):
    query, memory, mask = inputs()
    attention = created(score, alignment)
    context, weights = attention(query, memory, mask=mask)
    assert context.shape == (3, 4, 6)
    assert weights.shape == (3, 4, 5)
    score_weights, alignment_weights = (
        [numpy(w) for w in part.trainable_weights]
        for part in (attention.score, attention.alignment)
    )
    expected = reference.alignment(
        alignment,
        reference.scores(score, query, memory, score_weights),
        query,
        LENGTHS,
        OPTIONS.get(alignment),
        alignment_weights,
    )
    np.testing.assert_allclose(numpy(weights), expected, atol=1e-5)
    np.testing.assert_allclose(
        numpy(context), np.einsum("bts,bsd->btd", expected, memory), atol=2e-5
    )
    assert (numpy(weights)[~np.broadcast_to(mask[:, None], weights.shape)] == 0).all()
    assert (numpy(context)[2] == 0).all()
    sums = numpy(weights)[:2].sum(-1)
    if alignment == "local_p":  # the Gaussian takes some
        assert ((sums > 0) & (sums <= 1 + 1e-6)).all()
    else:
        np.testing.assert_allclose(sums, 1.0, atol=1e-6)


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_padding_changes_nothing(score, alignment):
    query, memory, mask = inputs()
    attention = created(score, alignment)
    context, weights = attention(query, memory, mask=mask)
    alone, alone_weights = attention(query[1:2], memory[1:2, :2])
    np.testing.assert_allclose(context[1:2], alone, atol=1e-5)
    np.testing.assert_allclose(weights[1:2, :, :2], alone_weights, atol=1e-5)


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_gradients_are_finite_and_zero_in_masked_rows(score, alignment):
    import tensorflow as tf

    query, memory, mask = inputs()
    attention = created(score, alignment)
    arguments = [tf.constant(query), tf.constant(memory)]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        context, _ = attention(*arguments, mask=mask, training=True)
        value = tf.reduce_sum(context)
    result = tape.gradient(value, [*arguments, *attention.trainable_variables])
    gradients = [np.asarray(g) for g in result if g is not None]
    assert all(np.isfinite(g).all() for g in gradients)
    assert (np.asarray(result[1])[~mask] == 0).all()
    assert np.any(result[1])


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_low_precision_stays_finite_and_close(score, alignment, dtype):
    query, memory, mask = inputs()
    exact, rough = (
        created(score, alignment),
        Attention(by_label(score), by_label(alignment), dtype=dtype),
    )
    rough.build(query.shape, memory.shape)
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


@pytest.mark.parametrize(
    ("score", "alignment"),
    [
        *((score, "soft") for score in sorted(SCORES)),
        *(("general", alignment) for alignment in KINDS if alignment != "soft"),
    ],
)
def test_compiled_equals_eager(score, alignment):
    """Forward and backward with XLA; each score and each alignment once."""
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
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


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


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_config_round_trip(score, alignment):
    layer = created(score, alignment, name="attention")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()
    for ours, theirs in zip(again.trainable_weights, layer.trainable_weights, strict=True):
        ours.assign(theirs)
    query, memory, mask = inputs()
    np.testing.assert_array_equal(
        again(query, memory, mask=mask)[0], layer(query, memory, mask=mask)[0]
    )


@pytest.mark.parametrize("alignment", KINDS)
def test_single_steps_equal_all_steps_together(alignment):
    query, memory, mask = inputs()
    attention = created("general", alignment)
    prepared = attention.with_random_key(attention.prepare(memory, mask))
    whole, weights, distribution = attention.attend_with_distribution(
        query, prepared, training=True
    )
    for t in range(4):
        position = np.full((3, 1), t)
        one = attention.attend_with_distribution(
            query[:, t : t + 1], prepared, position, training=True
        )
        for ours, theirs in zip(one, (whole, weights, distribution), strict=True):
            np.testing.assert_allclose(ours, theirs[:, t : t + 1], atol=1e-6)


@pytest.mark.parametrize("alignment", KINDS)
def test_only_rewarded_samples_differ_from_their_distribution(alignment):
    query, memory, mask = inputs()
    attention = created("general", alignment)
    _, weights, distribution = attention.attend_with_distribution(
        query, attention.prepare(memory, mask), training=True
    )
    assert attention.stochastic == (alignment == "hard")
    assert attention.stochastic == bool(np.any(numpy(weights) != numpy(distribution)))


def test_positions_beyond_the_locations_get_no_attention():
    query, memory, _ = inputs()
    attention = Attention({"type": "location", "max_source": 3}, "soft")
    _, weights = attention(query, memory)
    assert (numpy(weights)[..., 3:] == 0).all()
    np.testing.assert_allclose(numpy(weights)[..., :3].sum(-1), 1.0, atol=1e-6)


def test_equals_keras_attention():
    query, memory, mask = inputs()
    tensors = [keras.ops.convert_to_tensor(x) for x in (query, memory)]
    masks = [None, keras.ops.convert_to_tensor(mask)]
    ours, weights = Attention("dot", "soft")(query, memory, mask=mask)
    theirs, their_weights = keras.layers.Attention()(
        tensors, mask=masks, return_attention_scores=True
    )
    np.testing.assert_allclose(ours[:2], theirs[:2], atol=1e-5)
    np.testing.assert_allclose(weights[:2], their_weights[:2], atol=1e-5)


def test_equals_keras_additive_attention():
    """With identity kernels."""
    query, memory, mask = inputs()
    tensors = [keras.ops.convert_to_tensor(x) for x in (query, memory)]
    masks = [None, keras.ops.convert_to_tensor(mask)]
    keras_layer = keras.layers.AdditiveAttention()
    keras_layer.build([query.shape, memory.shape])
    keras_layer.scale.assign(RANDOM.normal(size=6))
    theirs, their_weights = keras_layer(tensors, mask=masks, return_attention_scores=True)
    attention = created("additive", "soft")
    identity = np.eye(6)
    attention.score.set_weights(
        [identity, identity, np.zeros(6), numpy(keras_layer.scale)[:, None]]
    )
    ours, weights = attention(query, memory, mask=mask)
    np.testing.assert_allclose(ours[:2], theirs[:2], atol=1e-5)
    np.testing.assert_allclose(weights[:2], their_weights[:2], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("score", "gneral"),
        ("alignment", "sofd"),
        ("score", {"type": "gneral"}),
        ("alignment", {"type": "sofd", "window": 3}),
    ],
)
def test_an_unknown_name_is_refused_with_a_suggestion(kind, value):
    with pytest.raises(ValueError, match=r"Did you mean (general|soft)"):
        Attention(**{kind: value})
