import keras
import numpy as np
import pytest

from regard.models.decoders.transformer import TransformerDecoder

RANDOM = np.random.default_rng(12)
TOKENS = np.array([[2, 5, 6, 7], [2, 4, 3, 0]], "int32")
VARIANTS = [
    {"norm": "pre", "positions": "sinusoidal"},
    {"norm": "post", "positions": "learned", "activation": "gelu", "tied": True},
    {"norm": "pre", "positions": "rotary", "activation": "swiglu"},
    {"attention": {"score": "general", "alignment": {"type": "local_m", "window": 1}}},
]


def created(**settings):
    sizes = {"embedding": 8, "layers": 2, "heads": 2, "feed_forward": 6}
    decoder = TransformerDecoder(9, memory_depth=5, final_depth=0, **{**sizes, **settings})
    decoder.build()
    return decoder


def memory():
    mask = np.array([[1, 1, 1], [1, 1, 0]], bool)
    values = RANDOM.normal(size=(2, 3, 5)).astype("float32") * mask[..., None]
    return {"values": values, "mask": mask}


def repeated(state, times):
    return {
        name: value
        if name in ("memory", "shared_cache")
        else keras.tree.map_structure(lambda x: keras.ops.repeat(x, times, axis=0), value)
        for name, value in state.items()
    }


@pytest.mark.parametrize("settings", VARIANTS)
def test_steps_equal_unroll(settings):
    decoder, source_memory = created(**settings), memory()
    logits, alignments = decoder.unroll(TOKENS, source_memory)
    assert logits.shape == (2, 4, 9)
    state = decoder.start(source_memory, max_length=6)
    for t in range(TOKENS.shape[1]):
        step_logits, state, alignment = decoder.step(TOKENS[:, t], state)
        np.testing.assert_allclose(step_logits, logits[:, t], atol=1e-5)
        np.testing.assert_allclose(alignment, alignments[:, t], atol=1e-5)


@pytest.mark.parametrize("settings", VARIANTS)
def test_attention_heads_of_all_layers(settings):
    decoder, source_memory = created(layers=3, **settings), memory()
    result = {name: np.asarray(x) for name, x in decoder.heads(TOKENS, source_memory).items()}
    assert tuple(result) == decoder.head_names
    assert result["cross"].shape == (2, 3, 2, 4, 3)
    assert result["target"].shape == (2, 3, 2, 4, 4)
    # The model's alignment is the mean of the last layer's heads.
    _, alignment = decoder.unroll(TOKENS, source_memory)
    np.testing.assert_allclose(result["cross"][:, -1].mean(1), alignment, atol=1e-6)
    np.testing.assert_allclose(result["target"].sum(-1), 1.0, atol=1e-5)
    later = np.triu(np.ones((4, 4), bool), 1)
    assert (result["target"][..., later] == 0).all()
    assert (result["cross"][1, ..., 2] == 0).all()  # padding


@pytest.mark.parametrize("settings", VARIANTS)
def test_later_tokens_do_not_change_earlier_outputs(settings):
    decoder, source_memory = created(**settings), memory()
    changed = TOKENS.copy()
    changed[:, 2] = 8
    previous_states, _ = decoder.unroll(TOKENS, source_memory)
    after, _ = decoder.unroll(changed, source_memory)
    np.testing.assert_array_equal(previous_states[:, :2], after[:, :2])
    assert not np.allclose(previous_states[:, 2], after[:, 2])


@pytest.mark.parametrize("settings", VARIANTS)
def test_padding_does_not_change_a_row(settings):
    decoder, source_memory = created(**settings), memory()
    beam_width, alignments = decoder.unroll(TOKENS, source_memory)
    one = {"values": source_memory["values"][1:, :2], "mask": source_memory["mask"][1:, :2]}
    alone, weights = decoder.unroll(TOKENS[1:, :3], one)
    np.testing.assert_allclose(beam_width[1:, :3], alone, atol=1e-5)
    np.testing.assert_allclose(alignments[1:, :3, :2], weights, atol=1e-5)
    assert (keras.ops.convert_to_numpy(alignments)[1, :, 2] == 0).all()


@pytest.mark.parametrize("settings", VARIANTS)
def test_hypotheses_share_one_memory_and_cache(settings):
    decoder, source_memory = created(**settings), memory()
    state = repeated(decoder.start(source_memory, max_length=4, hypotheses=2), 2)
    read = np.array([[5], [6], [7], [4]], "int32")
    _, state, _ = decoder.step(read[:, 0], state)
    # In the first row both hypotheses continue the second one; in the other row they swap.
    parents, next_tokens = np.array([1, 1, 3, 2]), np.array([4, 8, 8, 5], "int32")
    state["bias"] = keras.ops.take(state["bias"], parents, axis=0)
    read = np.concatenate([read[parents], next_tokens[:, None]], axis=1)
    logits, state, alignment = decoder.step(next_tokens, state)
    assert alignment.shape == (4, 3)
    assert [c["keys"].shape for c in state["shared_cache"]["caches"]] == [(2, 2, 4, 4)] * 2
    for row in range(4):
        one = {name: value[row // 2 : row // 2 + 1] for name, value in source_memory.items()}
        expected, weights = decoder.unroll(read[row : row + 1], one)
        np.testing.assert_allclose(logits[row], expected[0, 1], atol=1e-5)
        np.testing.assert_allclose(alignment[row], weights[0, 1], atol=1e-5)


def test_the_maximum_length_is_required():
    with pytest.raises(ValueError, match="max_length"):
        created().start(memory())


def test_tied_logits_are_products_with_the_embeddings():
    decoder, source_memory = created(tied=True, norm="post"), memory()
    loose = created(norm="post")
    names = {w.path.split("/", 1)[1]: w for w in decoder.weights}
    assert not any(name.startswith("logits/") for name in names)
    names["logits_bias"].assign(RANDOM.normal(size=9))
    for weight in loose.weights:
        name = weight.path.split("/", 1)[1]
        if name == "logits/kernel":
            weight.assign(np.asarray(names["embedding/table"]).T)
        else:
            weight.assign(names["logits_bias" if name == "logits/bias" else name])
    np.testing.assert_allclose(
        decoder.unroll(TOKENS, source_memory)[0], loose.unroll(TOKENS, source_memory)[0], atol=1e-5
    )


def test_alignment_is_the_mean_of_the_last_blocks_heads():
    decoder, source_memory = created(layers=1), memory()
    _, alignments = decoder.unroll(TOKENS, source_memory)
    np.testing.assert_allclose(keras.ops.sum(alignments, axis=-1), np.ones((2, 4)), atol=1e-5)
    block = decoder.blocks[0]
    whole, position = decoder.embedding(TOKENS), np.arange(4)[None]
    hidden = block.attention_norm(decoder.positions(whole, position))
    seen_by_itself, _ = block.attention(hidden, causal=True)
    query = block.cross_norm(decoder.positions(whole, position) + seen_by_itself)
    prepared = block.prepare(source_memory["values"], source_memory["mask"])
    _, heads, _ = block.cross.attend_with_distribution(query, prepared)
    np.testing.assert_allclose(alignments, keras.ops.mean(heads, axis=1), atol=1e-5)


def test_dropout_only_in_training():
    decoder, source_memory = created(dropout=0.5), memory()
    still, _ = decoder.unroll(TOKENS, source_memory)
    np.testing.assert_array_equal(still, decoder.unroll(TOKENS, source_memory)[0])
    assert not np.allclose(still, decoder.unroll(TOKENS, source_memory, training=True)[0])


@pytest.mark.parametrize("settings", VARIANTS)
def test_compiled_equals_eager(settings):
    import tensorflow as tf

    decoder, source_memory = created(**settings), memory()
    compiled = tf.function(
        lambda tokens: decoder.unroll(tokens, source_memory)[0], jit_compile=True
    )
    np.testing.assert_allclose(
        compiled(TOKENS), decoder.unroll(TOKENS, source_memory)[0], atol=1e-5
    )


def test_mixed_precision_is_close_and_steps_too():
    exact, rough, source_memory = created(), created(dtype="mixed_bfloat16"), memory()
    rough.set_weights(exact.get_weights())
    logits, _ = rough.unroll(TOKENS, source_memory)
    assert logits.dtype == "bfloat16"
    expected, _ = exact.unroll(TOKENS, source_memory)
    np.testing.assert_allclose(keras.ops.cast(logits, "float32"), expected, atol=0.1)
    step, state, _ = rough.step(TOKENS[:, 0], rough.start(source_memory, max_length=3))
    np.testing.assert_allclose(keras.ops.cast(step, "float32"), expected[:, 0], atol=0.1)
    assert all(c["values"].dtype == "bfloat16" for c in state["shared_cache"]["caches"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": {"score": "scaled_do"}}, "Did you mean scaled_dot"),
        ({"heads": 5}, "8 cannot be divided into 5"),
        ({"layers": 0}, "at least one layer, not 0"),
    ],
)
def test_invalid_arguments(settings, message):
    with pytest.raises(ValueError, match=message):
        created(**settings)


def test_config_round_trip():
    decoder = created(**VARIANTS[1], attention={"score": "dot"}, dropout=0.2)
    assert TransformerDecoder.from_config(decoder.get_config()).get_config() == decoder.get_config()


def test_hard_attention_returns_the_samples_of_every_head():
    hard = {"type": "hard", "training": "reinforce", "expectation": 0.0, "seed": 3}
    decoder, source_memory = created(attention={"alignment": hard}), memory()
    assert decoder.stochastic
    _, dropout_mask, distribution = decoder.unroll_with_distribution(
        TOKENS, source_memory, training=True
    )
    dropout_mask, distribution = (
        keras.ops.convert_to_numpy(x) for x in (dropout_mask, distribution)
    )
    assert dropout_mask.shape == distribution.shape == (2, 4, 2 * 2 * 3)
    dropout_mask, distribution = (x.reshape(2, 4, 4, 3) for x in (dropout_mask, distribution))
    np.testing.assert_array_equal(np.sort(dropout_mask, -1), np.tile([0.0, 0.0, 1.0], (2, 4, 4, 1)))
    np.testing.assert_allclose(distribution.sum(-1), 1.0, atol=1e-5)
    assert ((distribution > 0) == source_memory["mask"][:, None, None, :]).all()
    still, alignments = decoder.unroll(TOKENS, source_memory)
    assert alignments.shape == (2, 4, 3)
    np.testing.assert_array_equal(still, decoder.unroll(TOKENS, source_memory)[0])


def test_soft_attention_is_its_own_distribution():
    decoder, source_memory = created(), memory()
    assert not decoder.stochastic
    _, alignments, distribution = decoder.unroll_with_distribution(TOKENS, source_memory)
    np.testing.assert_array_equal(alignments, distribution)
    assert alignments.shape == (2, 4, 3)
