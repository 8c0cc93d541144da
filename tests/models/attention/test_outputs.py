"""Arguments and outputs of a call: values, positions, dropout, scores and distributions."""

import keras
import numpy as np
import pytest

from regard.models.attention import SCORES, Attention, MultiHeadAttention
from tests.models.attention import batches
from tests.models.tensors import fill, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(23)
QUERY = RANDOM.normal(size=(2, 3, 8)).astype("float32")
MEMORY = RANDOM.normal(size=(2, 5, 8)).astype("float32")
VALUES = RANDOM.normal(size=(2, 5, 3)).astype("float32")
MASK = np.arange(5) < np.array([5, 2])[:, None]

OPTIONS = {"location": {"max_source": 4}, "additive": {"layers": 2}}


def created(kind=Attention, *arguments, **options):
    layer = kind(*arguments, **options)
    layer.build((None, None, 8), (None, None, 8))
    return fill(layer, RANDOM, 0.5)


@pytest.mark.parametrize("alignment", ["soft", {"type": "local_p", "window": 1}])
def test_values_of_their_own(alignment):
    attention = created(Attention, "general", alignment)
    context, weights = attention(QUERY, MEMORY, VALUES, mask=MASK)
    _, expected = attention(QUERY, MEMORY, mask=MASK)
    assert_close(weights, expected)
    assert_close(context, numpy(weights) @ VALUES)


@pytest.mark.parametrize("score", sorted(SCORES))
def test_a_memory_split_into_keys_and_values(score):
    attention = Attention({"type": score, **OPTIONS.get(score, {})}, values="split")
    query = QUERY[..., :3]
    memory = RANDOM.normal(size=(2, 5, 7)).astype("float32")  # keys of depth 3, values of depth 4
    attention.build(query.shape, memory.shape)
    fill(attention, RANDOM, 0.5)
    context, weights = attention(query, memory, mask=MASK)
    expected, expected_weights = batches.attention(attention, query, memory, [5, 2])
    assert_close(context, expected)
    assert_close(weights, expected_weights)
    assert context.shape == (2, 3, 4)


def test_heads_with_a_split_memory_equal_separate_values():
    split = created(MultiHeadAttention, 2, 8, values="split")
    keys, values = np.split(MEMORY, 2, axis=-1)
    separate = MultiHeadAttention(2, 8)
    separate.build(QUERY.shape, keys.shape, values.shape)
    separate.set_weights(split.get_weights())
    expected = separate(QUERY, keys, values, mask=MASK)
    for ours, other in zip(split(QUERY, MEMORY, mask=MASK), expected, strict=True):
        assert_close(ours, other)
    once, _ = split.attend_once(QUERY[:, 0], split.prepare(MEMORY, MASK), np.int32(0))
    assert_close(once, expected[0][:, 0])


def test_explicit_values_take_the_place_of_a_split():
    split, shared = Attention(values="split"), Attention()
    context, _ = split(QUERY, MEMORY, VALUES)
    shared(QUERY, MEMORY)
    shared.set_weights(split.get_weights())
    assert_close(context, shared(QUERY, MEMORY, VALUES)[0])


def test_values_in_some_calls_only_are_refused():
    without, inputs = created(MultiHeadAttention, 2, 8), (QUERY, MEMORY, VALUES)
    separate = MultiHeadAttention(2, 8)
    separate(*inputs)
    for layer, arguments in ((without, inputs), (separate, inputs[:2])):
        with pytest.raises(ValueError, match="in all calls or in none"):
            layer(*arguments)


def test_a_memory_too_narrow_to_split():
    with pytest.raises(ValueError, match="needs a depth of 2, not 1"):
        Attention(values="split")(QUERY, MEMORY[..., :1])


@pytest.mark.parametrize("score", ["scaled_dot", "general"])
def test_a_memory_without_a_mask_is_attended_once(score):
    layer = created(MultiHeadAttention, 2, 8, score)
    expected, weights = layer(QUERY[:, :1], MEMORY, per_head=True)
    result, alone = layer.attend_once(QUERY[:, 0], layer.prepare(MEMORY), np.int32(0))
    assert_close(result, expected[:, 0])
    assert_close(alone, weights)


def test_positions():
    """A later query of a monotonic window looks further to the right."""
    attention = Attention("dot", {"type": "local_m", "window": 1})
    heads = created(MultiHeadAttention, 2, 8, "scaled_dot", {"type": "local_m", "window": 1})
    position = np.array([[3, 1, 9]])
    for layer in (attention, heads):
        _, weights = layer(QUERY, MEMORY, position=position)
        support = [np.flatnonzero(row).tolist() for row in numpy(weights)[0]]
        assert support == [[2, 3, 4], [0, 1, 2], [3, 4]]


def test_dropout_on_the_weights():
    attention = Attention("dot", dropout=0.5)
    memory = np.broadcast_to(np.eye(5, dtype="float32"), (2, 5, 5))  # whose context is the weights
    query = np.zeros((2, 400, 5), "float32")
    context, weights = attention(query, memory, training=True)
    assert_close(weights, 0.2)
    assert_close(np.unique(context), [0.0, 0.4])
    assert abs((numpy(context) == 0).mean() - 0.5) < 0.05
    assert_close(attention(query, memory)[0], 0.2)


@pytest.mark.parametrize(("kind", "arguments"), [(Attention, ()), (MultiHeadAttention, (2, 8))])
def test_every_choice_of_outputs(kind, arguments):
    layer = created(kind, *arguments, score="general")
    everything = {"return_scores": True, "return_distribution": True}
    context, weights, scores, distribution = layer(QUERY, MEMORY, mask=MASK, **everything)
    np.testing.assert_array_equal(distribution, weights)
    assert scores.shape == weights.shape == (2, 3, 5)
    alone = layer(QUERY, MEMORY, mask=MASK, return_weights=False)
    np.testing.assert_array_equal(alone, context)
    only = layer(QUERY, MEMORY, mask=MASK, return_context=False)
    np.testing.assert_array_equal(only, weights)
    if kind is Attention:
        assert_close(scores, layer.score(QUERY, MEMORY))
        masked = np.where(MASK[:, None], numpy(scores), -np.inf)
        expected = np.exp(masked) / np.exp(masked).sum(-1, keepdims=True)
        assert_close(weights, expected)
    per_head = {"per_head": True} if kind is MultiHeadAttention else {}
    raw = layer(QUERY, MEMORY, return_context=False, return_weights=False, return_scores=True)
    assert len(raw.shape) == 3
    if per_head:
        heads = layer(QUERY, MEMORY, return_weights=False, return_scores=True, **per_head)[1]
        assert_close(numpy(heads).mean(1), raw)
    with pytest.raises(ValueError, match="must return something"):
        layer(QUERY, MEMORY, return_context=False, return_weights=False)


class Rewarded(keras.layers.Layer):
    """REINFORCE for a reward of 1 on the third position."""

    def call(self, weights, distribution):
        chosen = keras.ops.stop_gradient(weights)
        log_prob = keras.ops.sum(chosen * keras.ops.log(distribution + 1e-9), axis=-1)
        self.add_loss(-keras.ops.mean(chosen[..., 2] * log_prob))
        return weights


def test_a_functional_model_learns_where_to_attend_by_reward():
    hard = {"type": "hard", "training": "reinforce", "seed": 3}
    query, memory = keras.Input((3, 8)), keras.Input((5, 8))
    attention = Attention("general", hard)
    context, weights, distribution = attention(query, memory, return_distribution=True)
    model = keras.Model([query, memory], [context, Rewarded()(weights, distribution)])
    model.compile(optimizer=keras.optimizers.Adam(0.3))
    inputs = [np.ones((16, 3, 8), "float32"), np.tile(MEMORY[:1], (16, 1, 1))]
    model.fit(inputs, epochs=15, verbose=0)
    np.testing.assert_array_equal(numpy(model(inputs)[1]).argmax(-1), 2)
    again = keras.Model.from_config(model.get_config(), {"Rewarded": Rewarded})
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(inputs)[1], model(inputs)[1])


def test_values_in_a_saved_model(tmp_path):
    query, memory, values = (keras.Input(x.shape[1:]) for x in (QUERY, MEMORY, VALUES))
    heads = MultiHeadAttention(2, 8, "general", dropout=0.1)(query, memory, values)
    context = Attention("additive", dropout=0.1)(heads[0], memory, values, return_weights=False)
    split = MultiHeadAttention(2, 8, values="split")(query, memory, per_head=True)
    alone = Attention({"type": "low_rank", "rank": 2}, "thresholded", "split")(query, memory)
    model = keras.Model([query, memory, values], [*heads, context, *split, *alone])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = [QUERY, MEMORY, VALUES]
    for ours, expected in zip(loaded(inputs), model(inputs), strict=True):
        assert_close(ours, expected)
    configs = [[layer.get_config() for layer in each.layers] for each in (model, loaded)]
    assert configs[0] == configs[1]
