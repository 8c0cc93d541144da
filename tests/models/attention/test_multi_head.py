import keras
import numpy as np
import pytest

from regard.models.attention import ALIGNMENTS, SCORES
from regard.models.attention.multi_head import MASK_BIAS, MultiHeadAttention
from regard.models.layers.positions import RotaryPositions

RANDOM = np.random.default_rng(4)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
OPTIONS = {"location": {"max_source": 8}, "top_k": {"k": 2}, "local_m": {"window": 2}}
OPTIONS["local_p"] = OPTIONS["local_m"]


def choice(name):
    return {"type": name, **OPTIONS.get(name, {})}


PAIRS = [(choice(s), choice(a)) for s in sorted(SCORES) for a in sorted(ALIGNMENTS)]
IDS = [f"{s['type']}-{a['type']}" for s, a in PAIRS]
# One of everything is enough where every pair would take the same way through the code.
SOME = [("scaled_dot", "soft"), ("general", "soft"), ("dot", choice("local_m"))]


def inputs(depth=6, target=3):
    query = RANDOM.normal(size=(3, target, depth)).astype("float32")
    memory = RANDOM.normal(size=(3, 5, depth + 1)).astype("float32")
    return query, memory


def array(tensor):
    return keras.ops.convert_to_numpy(keras.ops.cast(tensor, "float32"))


def softmax(scores, mask):
    weights = np.exp(scores - scores.max(-1, keepdims=True)) * mask
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)


def reference(layer, query, keys, mask):
    """Vaswani et al. 2017, §3.2.2, head by head in float64; mask ``[batch, target, source]``."""
    weights = {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in layer.weights}
    width, depth = layer.width, layer.depth
    if "project/kernel" in weights:
        kernels = np.split(weights["project/kernel"], 3, -1)
        biases = np.split(weights["project/bias"], 3, -1)
    else:
        kernels = [weights["project_query/kernel"]]
        kernels += np.split(weights["project_memory/kernel"], 2, -1)
        biases = [weights["project_query/bias"]]
        biases += np.split(weights["project_memory/bias"], 2, -1)
    q, k, v = (x @ m + b for x, m, b in zip((query, keys, keys), kernels, biases, strict=True))
    contexts, alignments = [], []
    for first in range(0, width, depth):
        part = slice(first, first + depth)
        scores = np.einsum("btd,bsd->bts", q[..., part], k[..., part]) / np.sqrt(depth)
        alignments.append(softmax(scores, mask))
        contexts.append(alignments[-1] @ v[..., part])
    joined = np.concatenate(contexts, -1)
    return joined @ weights["output/kernel"] + weights["output/bias"], np.stack(alignments, 1)


def created(*args, memory=True, **settings):
    layer = MultiHeadAttention(2, 8, *args, **settings)
    layer.build((None, None, 6), (None, None, 7) if memory else None)
    for weight in layer.weights:  # biases too
        weight.assign(RANDOM.normal(size=weight.shape) * 0.5)
    return layer


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_the_paper(causal):
    query = RANDOM.normal(size=(3, 5, 6)).astype("float32")
    layer = created(memory=False)
    observed = MASK[:, None, :] & (np.tril(np.ones((5, 5), bool)) | (not causal))
    outputs, weights = layer(query, mask=MASK, causal=causal, per_head=True)
    expected, expected_weights = reference(layer, query, query, observed)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)


def test_attention_to_a_memory_equals_the_paper():
    query, memory = inputs()
    layer = created()
    outputs, weights = layer(query, memory, mask=MASK)
    expected, expected_weights = reference(layer, query, memory, MASK[:, None, :])
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_allclose(weights, expected_weights.mean(1), atol=1e-5)


def test_equals_keras():
    query, memory = inputs()
    layer = created()
    theirs = keras.layers.MultiHeadAttention(2, 4, output_shape=8)
    theirs.build(query.shape, memory.shape)
    ours = {w.path.split("/", 1)[1]: np.asarray(w) for w in layer.weights}
    key, value = np.split(ours["project_memory/kernel"], 2, -1)
    key_bias, value_bias = np.split(ours["project_memory/bias"], 2, -1)
    pairs = [(ours["project_query/kernel"], ours["project_query/bias"]), (key, key_bias)]
    split = [x for k, b in [*pairs, (value, value_bias)] for x in (k.reshape(-1, 2, 4), b)]
    split = [x.reshape(2, 4) if x.ndim == 1 else x for x in split]
    theirs.set_weights([*split, ours["output/kernel"].reshape(2, 4, 8), ours["output/bias"]])
    outputs, weights = layer(query, memory, mask=MASK, per_head=True)
    expected, expected_weights = theirs(
        query, memory, attention_mask=MASK[:, None, :], return_attention_scores=True
    )
    np.testing.assert_allclose(outputs[:2], expected[:2], atol=1e-5)
    np.testing.assert_allclose(weights[:2], expected_weights[:2], atol=1e-5)


@pytest.mark.parametrize(("score", "alignment"), PAIRS, ids=IDS)
def test_every_pair_of_score_and_alignment(score, alignment):
    query, memory = inputs()
    layer = created(score, alignment)
    outputs, weights = layer(query, memory, mask=MASK, per_head=True)
    weights = array(weights)
    assert weights.shape == (3, 2, 3, 5)
    assert (weights >= 0).all()
    assert (weights[1, :, :, 2:] == 0).all()
    assert (weights[2] == 0).all()
    if alignment["type"] != "local_p":  # whose Gaussian is no distribution
        np.testing.assert_allclose(weights[:2].sum(-1), 1.0, atol=1e-5)
    bias = np.asarray(layer.output_projection.bias)
    np.testing.assert_allclose(outputs[2], np.tile(bias, (3, 1)), atol=1e-6)
    alone, alone_weights = layer(query[1:2], memory[1:2, :2], mask=MASK[1:2, :2], per_head=True)
    np.testing.assert_allclose(outputs[1:2], alone, atol=1e-5)
    np.testing.assert_allclose(weights[1:2, :, :, :2], alone_weights, atol=1e-5)


@pytest.mark.parametrize("rotary", [False, True])
def test_steps_equal_the_whole_sequence(rotary):
    """Two hypotheses per row; both continue the second after two steps."""
    query = RANDOM.normal(size=(2, 2, 4, 6)).astype("float32")
    layer, positions = created(memory=False), RotaryPositions()

    def angles(first, last):
        at = np.arange(first, last, dtype="int32")[None]
        return positions.angles(at, layer.depth) if rotary else None

    cache, observed = layer.cache(2, 0), np.zeros([2, 0, 2], bool)
    for t in range(4):
        if t == 2:
            query[:, 0, :2], observed = query[:, 1, :2], np.stack([observed[1], observed[1]])
        observed = np.concatenate([observed, np.eye(2, dtype=bool)[:, None]], axis=1)
        unseen = np.where(observed.reshape(1, 2, -1), 0, MASK_BIAS).astype("float32")
        one, cache = layer.step(
            query[:, :, t].reshape(4, 6),
            cache,
            np.repeat(unseen, 2, axis=0),
            None,
            angles(t, t + 1),
        )
        whole, _ = layer(query.reshape(4, 4, 6), causal=True, angles=angles(0, 4))
        np.testing.assert_allclose(one, whole[:, t], atol=1e-5)
    assert tuple(cache["values"].shape) == (2, 2, 8, 4)


@pytest.mark.parametrize(("score", "alignment"), SOME)
def test_a_query_per_hypothesis_equals_all_queries_together(score, alignment):
    query, memory = inputs()
    layer = created(score, alignment)
    prepared = layer.prepare(memory, MASK)
    position = np.full([3, 3], 2, "int32")
    expected, weights, _ = layer.attend_with_distribution(query, prepared, position)
    result, attention_weights = layer.attend_once(query.reshape(9, 6), prepared, np.int32(2))
    np.testing.assert_allclose(array(result).reshape(3, 3, 8), expected, atol=1e-5)
    np.testing.assert_allclose(attention_weights, weights, atol=1e-6)


@pytest.mark.parametrize(("score", "alignment"), SOME)
def test_causal_attention_ignores_later_positions(score, alignment):
    query = RANDOM.normal(size=(1, 4, 6)).astype("float32")
    changed = query.copy()
    changed[:, 3] += 1
    layer = created(score, alignment, memory=False)
    previous_states, after = (array(layer(x, causal=True)[0]) for x in (query, changed))
    np.testing.assert_array_equal(previous_states[:, :3], after[:, :3])
    assert not np.allclose(previous_states[:, 3], after[:, 3])


@pytest.mark.parametrize(("score", "alignment"), SOME)
def test_gradients_are_finite_with_a_masked_row(score, alignment):
    import tensorflow as tf

    query, memory = (tf.constant(x) for x in inputs())
    layer = created(score, alignment)
    with tf.GradientTape() as tape:
        tape.watch([query, memory])
        outputs, weights = layer(query, memory, mask=MASK)
        loss = tf.reduce_sum(outputs**2) + tf.reduce_sum(weights**2)
    gradients = tape.gradient(loss, [query, memory])
    assert all(np.isfinite(g).all() for g in gradients)
    assert (gradients[1].numpy()[2] == 0).all()
    assert np.abs(gradients[1].numpy()[0]).max() > 0


def test_gradient_by_finite_differences():
    import tensorflow as tf

    query, memory = inputs()
    layer = created()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(layer(query, memory, mask=MASK)[0]))
    kernel = layer.project_memory.kernel
    gradient = tape.gradient(loss, kernel.value).numpy()
    start = np.asarray(kernel)

    def at(value):
        kernel.assign(value)
        outputs, _ = reference(layer, query, memory, MASK[:, None, :])
        return np.tanh(outputs).sum()

    for i, j in [(0, 0), (3, 7), (6, 9), (2, 15)]:
        step = np.zeros_like(start)
        step[i, j] = 1e-2
        by_difference = (at(start + step) - at(start - step)) / 2e-2
        assert gradient[i, j] == pytest.approx(by_difference, abs=2e-3)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_low_precision_stays_finite_and_close(dtype):
    query, memory = inputs()
    exact, rough = created(), MultiHeadAttention(2, 8, dtype=dtype)
    rough.build((None, None, 6), (None, None, 7))
    rough.set_weights(exact.get_weights())
    outputs, weights = exact(query, memory, mask=MASK)
    rough_outputs, rough_weights = rough(query, memory, mask=MASK)
    np.testing.assert_allclose(array(rough_outputs), outputs, atol=0.1)
    np.testing.assert_allclose(array(rough_weights), weights, atol=0.05)
    # Scores of several hundred: their exponentials overflow float16 without float32 inside.
    large, _ = rough(query * 30, memory * 30, mask=MASK)
    assert np.isfinite(array(large)).all()


def test_dropout_only_in_training():
    query, memory = inputs()
    layer = created(dropout=0.5)
    still = array(layer(query, memory)[0])
    np.testing.assert_array_equal(still, array(layer(query, memory)[0]))
    assert not np.allclose(still, array(layer(query, memory, training=True)[0]))


def test_compiled_equals_eager():
    import tensorflow as tf

    query, memory = inputs()
    layer = created()
    compiled = tf.function(lambda q, m, k: layer(q, m, mask=k)[0], jit_compile=True)
    eager, _ = layer(query, memory, mask=MASK)
    np.testing.assert_allclose(compiled(query, memory, MASK), eager, atol=1e-5)


@pytest.mark.parametrize(("heads", "width"), [(3, 8), (0, 8)])
def test_heads_that_do_not_divide_the_width_are_refused(heads, width):
    with pytest.raises(ValueError, match=f"{width} cannot be divided into {heads}"):
        MultiHeadAttention(heads, width)


def test_config_round_trip():
    layer = MultiHeadAttention(2, 8, {"type": "general"}, "soft", 0.1, name="attention")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()


def test_a_fully_masked_position_does_not_attend_to_the_future():
    attention = MultiHeadAttention(2, 4)
    inputs = np.random.default_rng(0).normal(size=(1, 4, 4)).astype("float32")
    mask = np.array([[False, True, True, True]])
    outputs, weights = attention(inputs, mask=mask, causal=True)
    np.testing.assert_array_equal(weights[0, 0], 0.0)
    later = inputs.copy()
    later[:, 2:] += 1.0
    changed, _ = attention(later, mask=mask, causal=True)
    np.testing.assert_allclose(changed[:, :2], outputs[:, :2], atol=1e-6)
