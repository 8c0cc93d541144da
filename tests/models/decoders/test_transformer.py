import keras
import numpy as np
import pytest

from regard.models.decoders.transformer import TransformerDecoder
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(12)
TOKENS = np.array([[2, 5, 6, 7], [2, 4, 3, 0]], "int32")
VARIANTS = [
    {"norm": "pre", "positions": "sinusoidal"},
    {"norm": "post", "positions": "learned", "activation": "gelu", "tied": True},
    {"norm": "pre", "positions": "rotary", "activation": "swiglu"},
    {"attention": {"score": "general", "alignment": {"type": "local_m", "window": 1}}},
    {"positions": "relative", "max_distance": 1},
    {"positions": "alibi", "norm": "post"},
    {"positions": "learned", "position_merge": "concat", "tied": True},
]


def created(**settings):
    sizes = {"embedding": 8, "layers": 2, "heads": 2, "feed_forward": 6}
    decoder = TransformerDecoder(9, memory_depth=5, final_depth=0, **{**sizes, **settings})
    decoder.build()
    return decoder


@pytest.fixture(scope="module", params=VARIANTS, ids=str)
def decoder(request):
    """A decoder of each variant, for all tests that do not change it."""
    return created(**request.param)


@pytest.fixture
def source_memory(memory):
    return memory(states=0)


def test_steps_equal_unroll(decoder, source_memory):
    logits, alignments = decoder.unroll(TOKENS, source_memory)
    assert logits.shape == (2, 4, 9)
    state = decoder.start(source_memory, max_length=6)
    for t in range(TOKENS.shape[1]):
        step_logits, state, alignment = decoder.step(TOKENS[:, t], state)
        assert_close(step_logits, logits[:, t])
        assert_close(alignment, alignments[:, t])


def test_attention_heads_of_all_layers(decoder, source_memory):
    result = {name: np.asarray(x) for name, x in decoder.heads(TOKENS, source_memory).items()}
    assert tuple(result) == decoder.head_names
    assert result["cross"].shape == (2, 2, 2, 4, 3)
    assert result["target"].shape == (2, 2, 2, 4, 4)
    # The model's alignment is the mean of the last layer's heads.
    _, alignment = decoder.unroll(TOKENS, source_memory)
    assert_close(result["cross"][:, -1].mean(1), alignment)
    assert_close(result["target"].sum(-1), 1.0)
    later = np.triu(np.ones((4, 4), bool), 1)
    assert (result["target"][..., later] == 0).all()
    assert (result["cross"][1, ..., 2] == 0).all()  # padding


def test_padding_does_not_change_a_row(decoder, source_memory):
    batched, alignments = decoder.unroll(TOKENS, source_memory)
    one = {name: value[1:, :2] for name, value in source_memory.items()}
    alone, weights = decoder.unroll(TOKENS[1:, :3], one)
    assert_close(batched[1:, :3], alone)
    assert_close(alignments[1:, :3, :2], weights)
    assert (keras.ops.convert_to_numpy(alignments)[1, :, 2] == 0).all()


def test_hypotheses_share_one_memory_and_cache(decoder, source_memory):
    state = decoder.start(source_memory, max_length=4, hypotheses=2)
    for name in set(state) - {"memory", "shared_cache"}:
        state[name] = keras.tree.map_structure(lambda x: np.repeat(x, 2, axis=0), state[name])
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
        assert_close(logits[row], expected[0, 1])
        assert_close(alignment[row], weights[0, 1])


def test_the_maximum_length_is_required(source_memory):
    with pytest.raises(ValueError, match="max_length"):
        created().start(source_memory)


def test_reinforce_is_refused():
    """A step has a choice for every head of every layer."""
    hard = {"type": "hard", "training": "reinforce"}
    with pytest.raises(ValueError, match="use a recurrent decoder"):
        created(attention={"alignment": hard})
    created(attention={"alignment": {**hard, "training": "straight_through"}})
