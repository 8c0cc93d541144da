"""Keras's implicit masks, explicit masks, and wrong ranks."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.attention import ALIGNMENTS, Attention, MultiHeadAttention, Pointer
from tests.models.tensors import fill, gradients, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(21)
IDS = np.array([[4, 5, 0], [3, 6, 7]], "int32")
SOURCE = np.array([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]], "int32")
PAIRS = RANDOM.random((2, 3, 5)) < 0.6
PAIRS[1, 0] = False
QUERY, MEMORY = RANDOM.normal(size=(2, 3, 8)), RANDOM.normal(size=(2, 5, 8))
# Each layer, and how many of its outputs are per head.
LAYERS = {
    "attention": lambda: Attention("general"),
    "windows": lambda: Attention("general", {"type": "local_p", "window": 1}),
    "heads": lambda: MultiHeadAttention(2, 8),
    "heads, general": lambda: MultiHeadAttention(2, 8, "general", "sparsemax"),
    "pointer": lambda: Pointer("additive"),
}
every_layer = pytest.mark.parametrize("name", LAYERS)


# Layers whose results depend on the number of positions that a mask allows.
BOUNDED = {
    "location": lambda: Attention({"type": "location", "max_source": 3}),
    "location, local_p": lambda: Attention(
        {"type": "location", "max_source": 3}, {"type": "local_p", "window": 1}
    ),
    "location, heads": lambda: MultiHeadAttention(
        2, 8, {"type": "location", "max_source": 3}, {"type": "local_p", "window": 1}
    ),
    "location, clipped pointer": lambda: Pointer({"type": "location", "max_source": 3}, clip=2.0),
}


def embedded():
    """Query and memory with the masks of an embedding."""
    embedding = keras.layers.Embedding(9, 8, mask_zero=True)
    return embedding(IDS), embedding(SOURCE)


def created(name):
    layer = {**LAYERS, **BOUNDED}[name]()
    layer.build((None, None, 8), (None, None, 8))
    return fill(layer, RANDOM, 0.5)


def outputs(result):
    return [numpy(x) for x in (result if isinstance(result, tuple) else (result,))]


def equal(ours, theirs):
    for one, other in zip(outputs(ours), outputs(theirs), strict=True):
        assert_close(one, other)


def test_attention_coincides_with_keras():
    query, memory = embedded()
    values = keras.layers.Dense(4)(memory)  # which keeps the mask
    layer = Attention("dot")
    theirs = keras.layers.Attention()
    for arguments, inputs in (((query, memory), [query, memory]), ((query, memory, values),) * 2):
        keys_last = [*inputs[:1], *inputs[2:], inputs[1]] if len(inputs) > 2 else inputs
        expected, weights = theirs(keys_last, return_attention_scores=True)
        context, ours = layer(*arguments)
        assert_close(context, expected)
        assert_close(ours[IDS > 0], weights[IDS > 0])
        np.testing.assert_array_equal(context._keras_mask, expected._keras_mask)


def test_heads_coincide_with_keras():
    """With keys and values of different depths, whose projections are separate."""
    query, memory = embedded()
    values = keras.layers.Dense(6)(memory)
    layer = MultiHeadAttention(2, 8)
    layer(query, memory, values)
    fill(layer, RANDOM)
    theirs = keras.layers.MultiHeadAttention(2, 4, output_shape=8)
    theirs.build(query.shape, values.shape, memory.shape)
    weights = []
    for dense in (layer.project_query, layer.project_keys, layer.project_values):
        weights += [np.reshape(dense.kernel, (-1, 2, 4)), np.reshape(dense.bias, (2, 4))]
    projection = layer.output_projection
    theirs.set_weights([*weights, np.reshape(projection.kernel, (2, 4, 8)), projection.bias])
    # Keras's layer removes the masks of its inputs.
    result, result_weights = layer(query, memory, values, per_head=True)
    expected, expected_weights = theirs(query, values, memory, return_attention_scores=True)
    valid = IDS > 0
    assert_close(result[valid], expected[valid])
    for row, length in ((0, 2), (1, 3)):
        ours, other = result_weights[row, :, :length], expected_weights[row, :, :length]
        assert_close(ours, other)
    np.testing.assert_array_equal(result._keras_mask, expected._keras_mask)
    assert len(layer.weights) == len(theirs.weights)


def test_self_attention_coincides_with_keras():
    (query, _), layer = embedded(), MultiHeadAttention(2, 8)
    (expected, weights), valid = layer(query, mask=IDS > 0), IDS > 0
    result, result_weights = layer(query)
    assert_close(result[valid], expected[valid])
    assert_close(result_weights[valid], weights[valid])
    assert (numpy(result_weights)[0, :, 2] == 0).all()
    np.testing.assert_array_equal(result._keras_mask, valid)


@every_layer
def test_implicit_masks_equal_explicit_masks(name):
    query, memory = embedded()
    layer, valid = created(name), (IDS > 0)[:, :, None] & (SOURCE > 0)[:, None]
    implicit = layer(query, memory)
    equal(implicit, layer(numpy(query), numpy(memory), mask=valid))
    first = implicit[0] if isinstance(implicit, tuple) else implicit
    np.testing.assert_array_equal(first._keras_mask, IDS > 0)
    # Implicit and explicit masks at once, the latter in each form.
    equal(layer(query, memory, mask=PAIRS), layer(numpy(query), numpy(memory), mask=valid & PAIRS))
    ends = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], bool)
    both = valid & ends[:, None]
    explicit = layer(query, memory, mask=ends)
    equal(explicit, layer(numpy(query), numpy(memory), mask=both))
    first = explicit[0] if isinstance(explicit, tuple) else explicit
    np.testing.assert_array_equal(first._keras_mask, IDS > 0)


@pytest.mark.parametrize("name", [*LAYERS, *BOUNDED])
def test_a_query_mask_alone_changes_masked_queries_only(name):
    layer, valid = created(name), IDS > 0
    everywhere = np.ones(SOURCE.shape, bool)
    expected = outputs(layer(QUERY, MEMORY, mask=everywhere))
    result = outputs(layer(QUERY, MEMORY, query_mask=valid))
    for ours, other in zip(result, expected, strict=True):
        assert_close(ours[valid], other[valid])
    weights = result[-1]
    assert weights.shape == (2, 3, 5)
    assert (weights[~valid] == 0).all()
    if name in BOUNDED:
        assert (weights[..., 3:] == 0).all()


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", ["heads", "heads, general"])
@pytest.mark.parametrize(
    "explicit", [None, SOURCE % 2 > 0, PAIRS[:, :, :3]], ids=lambda m: str(np.ndim(m))
)
def test_functional_self_attention_equals_eager(name, explicit, policy):
    layer = type(LAYERS[name]()).from_config({**LAYERS[name]().get_config(), "dtype": policy})
    layer.build((None, None, 8))
    embedding = keras.layers.Embedding(9, 8, mask_zero=True)
    options = {} if explicit is None else {"mask": explicit[:, :3, ...]}
    eager = layer(embedding(IDS), **options)
    ids = keras.Input((3,), dtype="int32")
    masks = [keras.Input(mask.shape[1:], dtype="bool") for mask in options.values()]
    symbolic = layer(embedding(ids), **dict(zip(options, masks, strict=True)))
    model = keras.Model([ids, *masks], list(symbolic))
    equal(tuple(model([IDS, *options.values()])), eager)
    assert (outputs(eager)[1][IDS == 0] == 0).all()
    np.testing.assert_array_equal(eager[0]._keras_mask, IDS > 0)


@every_layer
def test_a_mask_per_query_equals_single_queries(name):
    layer, position = created(name), {} if name == "pointer" else {"position": None}
    expected = outputs(layer(QUERY, MEMORY, mask=PAIRS))
    for t in range(3):
        if position:
            position["position"] = np.full((2, 1), t)
        alone = outputs(layer(QUERY[:, t : t + 1], MEMORY, mask=PAIRS[:, t], **position))
        for ours, other in zip(expected, alone, strict=True):
            assert_close(ours[:, t : t + 1], other)
    weights = expected[-1]
    assert (weights[~PAIRS] == 0).all()
    assert np.isfinite(np.concatenate([x.ravel() for x in expected])).all()


@every_layer
def test_a_mask_that_hides_everything_gives_zeros_and_finite_gradients(name):
    layer = created(name)

    def value(query, memory):
        return sum(keras.ops.sum(x**2) for x in outputs_of(layer(query, memory, mask=PAIRS)))

    def outputs_of(result):
        return result if isinstance(result, tuple) else (result,)

    result = gradients(value, QUERY.astype("float32"), MEMORY.astype("float32"), layer=layer)
    assert all(np.isfinite(gradient).all() for gradient in result)
    nothing = outputs(layer(QUERY, MEMORY, mask=np.zeros((2, 3, 5), bool)))
    assert (nothing[-1] == 0).all()


@every_layer
def test_models_with_masks_are_saved_and_compiled_without_warnings(name, tmp_path):
    ids = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(9, 8, mask_zero=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = created(name)(*map(embedding, ids))
        first, *rest = result if isinstance(result, tuple) else (result,)
        if name != "pointer":  # whose output has one column per position of the source
            rest.append(keras.layers.LSTM(3)(first))
        pooled = keras.layers.GlobalAveragePooling1D()(first)
        model = keras.Model(ids, [first, pooled, *rest])
        expected = model([IDS, SOURCE])
    valid = (IDS > 0)[..., None]
    mean = (numpy(expected[0]) * valid).sum(1) / valid.sum(1)
    assert_close(expected[1], mean)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    configs = [[layer.get_config() for layer in each.layers[3:]] for each in (model, loaded)]
    assert configs[0] == configs[1]
    compiled = tf.function(lambda *x: loaded(list(x))[:2], jit_compile=True)
    equal(tuple(loaded([IDS, SOURCE])), tuple(expected))
    equal(tuple(compiled(tf.constant(IDS), tf.constant(SOURCE))), tuple(expected[:2]))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_masks_in_low_precision(policy):
    """Masked scores of any size stay without weight."""
    for name in ("attention", "heads"):
        exact, rough = (
            created(name),
            type(created(name)).from_config({**created(name).get_config(), "dtype": policy}),
        )
        rough.build((None, None, 8), (None, None, 8))
        rough.set_weights(exact.get_weights())
        context, weights = rough(QUERY * 50, MEMORY * 50, mask=PAIRS)
        assert keras.backend.standardize_dtype(context.dtype) == policy.removeprefix("mixed_")
        assert np.isfinite(numpy(context)).all()
        assert (numpy(weights)[~PAIRS] == 0).all()


@pytest.mark.parametrize("alignment", sorted(ALIGNMENTS))
@pytest.mark.parametrize(("batch", "source"), [(0, 5), (2, 0), (0, 0)])
def test_empty_inputs(alignment, batch, source):
    kwargs = {"alignment": alignment}
    query = np.zeros((batch, 3, 8), "float32")
    memory = np.zeros((batch, source, 8), "float32")
    for layer in (Attention(**kwargs), MultiHeadAttention(2, 8, **kwargs)):
        for training in (False, True):
            context, weights = layer(query, memory, training=training)
            assert (context.shape, weights.shape) == ((batch, 3, 8), (batch, 3, source))
            assert np.isfinite(numpy(context)).all()


def test_sizes_that_disagree_are_refused():
    query, memory, pairs = QUERY, MEMORY, PAIRS
    layers = [lambda: Attention(), lambda: MultiHeadAttention(2, 8), lambda: Pointer()]
    for layer in layers:
        calls = [
            (lambda layer: layer(query, memory[:1]), "memory must be .*batch is 2 as in query"),
            (lambda layer: layer(query, memory, mask=pairs[0]), r"mask must be .*\(3, 5\)"),
            (lambda layer: layer(query, memory, mask=pairs[:, :2]), "target is 3 as in query"),
            (lambda layer: layer(query, memory, mask=pairs[..., :1]), "source is 5 as in memory"),
            (lambda layer: layer(query, memory, mask=[pairs, pairs]), "not a list"),
            (lambda layer: layer(query, memory, query_mask=SOURCE > 0), "query_mask must be"),
            (lambda layer: layer(query, memory, memory_mask=IDS > 0), "memory_mask must be"),
        ]
        for call, message in calls:
            with pytest.raises(ValueError, match=message):
                call(layer())
    with pytest.raises(ValueError, match=r"values must be .*source is 5"):
        Attention()(query, memory, memory[:, :4])
    with pytest.raises(ValueError, match=r"choices must be .*target is 3"):
        Pointer()(query, memory, choices=pairs[:, :2])
    with pytest.raises(ValueError, match=r"mask must be .*source is 3"):
        MultiHeadAttention(2, 8)(query, mask=SOURCE > 0)
    with pytest.raises(ValueError, match=r"mask must be .*source is 5"):
        Attention().prepare(memory, IDS > 0)


def test_wrong_ranks_are_refused():
    query, memory, flat = QUERY, MEMORY, QUERY[:, 0]
    calls = [
        (lambda: Attention()(flat, memory), "query must be .batch, target, depth., but"),
        (lambda: Attention()(query, memory[0]), r"memory .* \(5, 8\)"),
        (lambda: Attention()(query, memory, memory[..., 0]), r"values .* \(2, 5\)"),
        (lambda: Attention()(query, memory, SOURCE > 0), "values must be"),
        (lambda: Attention()(query, memory, mask=SOURCE[0] > 0), r"mask .* \(5,\)"),
        (lambda: MultiHeadAttention(2, 8)(flat), "query must be"),
        (lambda: MultiHeadAttention(2, 8)(flat, memory), "query must be"),
        (lambda: MultiHeadAttention(2, 8)(query, memory, mask=PAIRS[None]), "mask must be"),
        (lambda: MultiHeadAttention(2, 8)(query, values=memory), "Values need a memory"),
        (lambda: Pointer()(flat, memory), "query must be"),
        (lambda: Pointer()(query, memory, choices=SOURCE > 0), "choices must be"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
    layer = created("heads")
    with pytest.raises(ValueError, match=r"memory_mask must be \[batch, source\], but"):
        layer.prepare(memory, PAIRS)
    with pytest.raises(ValueError, match="query must be"):
        layer.attend_with_distribution(flat, layer.prepare(memory))
