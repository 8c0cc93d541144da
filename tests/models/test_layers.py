"""What every layer has to do; the formulas of each layer are tested in its own module."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.attention import ALIGNMENTS, SCORES, Attention, MultiHeadAttention, Pointer
from regard.models.attention.relative import RELATIVE_POSITIONS
from regard.models.decoders import (
    BahdanauDecoder,
    FeedForwardDecoder,
    LuongDecoder,
    PointerDecoder,
    TransformerDecoder,
)
from regard.models.encoders import (
    EmbeddingEncoder,
    EncoderStack,
    RecurrentEncoder,
    TextConvolutionEncoder,
    TransformerEncoder,
)
from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.layers.answer_pointer import AnswerPointer
from regard.models.layers.bridge import Bridge
from regard.models.layers.cells import GRUCell, LSTMCell, RNNCell
from regard.models.layers.embeddings import MemoryInput, PointEmbedding, TokenEmbedding
from regard.models.layers.grid import GridPositions, GridSelfAttention
from regard.models.layers.matching import AttentionFlow, CrossAttention
from regard.models.layers.pooling import POOLINGS
from regard.models.layers.positions import POSITIONS
from regard.models.layers.transformer import DecoderBlock, EncoderBlock, FeedForward
from regard.models.reinforce import Reinforce
from regard.models.scheduled_sampling import ScheduledSampling
from regard.models.serialization import ConfiguredLayer
from tests.marks import slow
from tests.models.tensors import numpy, round_trip
from tests.tolerances import assert_close

HEADS = {"heads": 2, "feed_forward": 6}
BLOCK = {"width": 8, **HEADS}
TRANSFORMER = {"embedding": 8, "layers": 2, **HEADS}
RECURRENT = {"embedding": 3, "units": 4, "layers": 2}
DECODER = {"vocabulary": 9, "memory_depth": 5, "final_depth": 6}
TEXT = {**DECODER, **RECURRENT, "attention": {"score": "general"}}
FEED_FORWARD = {**DECODER, "embedding": 3, "units": 4, "context_size": 2, "smoothing": 1}
IMAGE = {"size": (16, 24), "channels": (8, 16), "units": 6, "positions": "sinusoidal"}
POINTER = {"memory_depth": 5, "final_depth": 6, "units": 5, "layers": 2, "glimpse": True}

# Arguments that differ from the defaults, for every class.
CONFIGURED = [
    *((SCORES[name], {}) for name in ("dot", "scaled_dot", "general")),
    (SCORES["additive"], {"units": 4, "layers": 2}),
    (SCORES["concat"], {"units": 2}),
    (SCORES["low_rank"], {"rank": 3}),
    (SCORES["cosine"], {"strength": 3.0}),
    (SCORES["location"], {"max_source": 5}),
    *((ALIGNMENTS[name], {}) for name in ("soft", "sparsemax")),
    (ALIGNMENTS["hard"], {"training": "reinforce", "expectation": 0.25, "inference": "sample"}),
    (ALIGNMENTS["thresholded"], {"threshold": 0.2}),
    (ALIGNMENTS["top_k"], {"k": 3}),
    (ALIGNMENTS["local_m"], {"window": 1}),
    (ALIGNMENTS["local_p"], {"window": 4, "units": 3}),
    (Attention, {"score": "concat", "alignment": {"type": "top_k", "k": 2}, "values": "split"}),
    (MultiHeadAttention, {"heads": 2, "width": 8, "score": {"type": "general"}, "dropout": 0.1}),
    (Pointer, {"score": {"type": "concat", "units": 3}, "clip": 10.0}),
    (Bridge, {"state_names": ("h", "c"), "units": 5, "layers": 2, "depth": 4, "zeros": True}),
    *((kind, {"units": 4, "directions": 2, "extra": 3}) for kind in (LSTMCell, GRUCell, RNNCell)),
    (TokenEmbedding, {"vocabulary": 6, "depth": 4, "dropout": 0.25, "scale": True}),
    (PointEmbedding, {"depth": 4, "dropout": 0.25, "dimensions": 4}),
    (MemoryInput, {}),
    (FeedForward, {"inner": 5, "activation": "gelu", "dropout": 0.2}),
    (GridPositions, {"positions": "learned", "size": (3, 4)}),
    (GridSelfAttention, {}),
    (CrossAttention, {"units": 6, "attention": {"score": "additive", "alignment": "sparsemax"}}),
    (AttentionFlow, {}),
    (AnswerPointer, {"units": 6, "hops": 2, "score": {"type": "general"}}),
    *((POOLINGS[name], {}) for name in ("mean", "max", "mean_max", "gate")),
    (POOLINGS["self_attention"], {"units": 6, "hops": 3, "penalty": 0.5}),
    (POOLINGS["top_down"], {"score": "dot"}),
    *((kind, {"max_positions": 9}) for kind in POSITIONS.values()),
    (EncoderBlock, {**BLOCK, "norm": "post", "activation": "swiglu", "attention_dropout": 0.1}),
    (DecoderBlock, {**BLOCK, "memory_depth": 5, "cross": {"score": "general"}, "norm": "post"}),
    (RecurrentEncoder, {"vocabulary": 9, **RECURRENT, "cell": "gru", "reverse": True}),
    (RecurrentEncoder, {"vocabulary": None, **RECURRENT}),
    (TransformerEncoder, {"vocabulary": 9, **TRANSFORMER, "norm": "post", "positions": "rotary"}),
    (EmbeddingEncoder, {"vocabulary": 9, "embedding": 3, "scale": False}),
    (TextConvolutionEncoder, {"vocabulary": 9, "embedding": 3, "units": 4, "kernel_size": 2}),
    (TextConvolutionEncoder, {"vocabulary": 9, "units": 4, "pooling": True}),
    (EncoderStack, {"vocabulary": 9, "encoders": [{"type": "recurrent"}], "embedding": 3}),
    (ConvolutionalEncoder, {"size": (16, 24), "channels": (8, 16), "self_attention": True}),
    (LuongDecoder, {**TEXT, "input_feeding": False, "initial_state": "zeros", "dropout": 0.2}),
    (BahdanauDecoder, {**TEXT, "readout": "tanh", "residual": True, "tied": False}),
    (TransformerDecoder, {**DECODER, **TRANSFORMER, "attention": {"score": "dot"}, "tied": True}),
    (FeedForwardDecoder, {**FEED_FORWARD, "pooling": "max", "attention": None, "dropout": 0.2}),
    (PointerDecoder, {**POINTER, "score": {"type": "concat", "units": 3}, "visits": "once"}),
    *((kind, {"heads": 2, "depth": 4}) for kind in RELATIVE_POSITIONS.values()),
    (ScheduledSampling, {"schedule": "linear", "steps": 7}),
    (Reinforce, {"reward_weight": 0.5, "entropy_weight": 0.1}),
]
NAMES = [kind.__name__ for kind, _ in CONFIGURED]


@pytest.mark.parametrize(("kind", "settings"), CONFIGURED, ids=NAMES)
def test_config_round_trip(kind, settings):
    layer = kind(**settings, name="mine", dtype="mixed_bfloat16")
    again = round_trip(layer)
    assert type(again) is kind
    assert again.get_config() == layer.get_config()
    assert settings.items() <= again.settings.items()
    assert (again.name, again.compute_dtype) == ("mine", "bfloat16")
    assert keras.saving.get_registered_name(kind) == f"regard>{kind.__name__}"


def test_every_layer_has_a_round_trip():
    def concrete(kind):
        below = kind.__subclasses__()
        own = {kind} if keras.saving.get_registered_name(kind).startswith("regard>") else set()
        return own.union(*map(concrete, below))

    layers = {kind for kind in concrete(ConfiguredLayer) if kind.__module__.startswith("regard.")}
    assert layers == {kind for kind, _ in CONFIGURED}


RANDOM = np.random.default_rng(4)
MASK = np.array([[1, 1, 1], [1, 1, 0]], bool)
VECTORS, VALUES = RANDOM.normal(size=(2, 3, 8)), RANDOM.normal(size=(2, 3, 5)) * MASK[..., None]
IDS = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
TOKENS = np.array([[2, 5, 6, 7], [2, 4, 3, 0]], "int32")
POINTS = np.concatenate([RANDOM.uniform(-1, 1, (2, 4, 2)), (IDS > 0)[..., None]], -1)
POINTS *= POINTS[..., 2:]
CHOICES = np.array([[2, 6, 4, 5], [2, 5, 4, 0]], "int32")
IMAGES = RANDOM.integers(0, 256, (2, 16, 24, 3)).astype("uint8")


def encode(layer, inputs, **training):
    return layer(inputs, **training)["values"]


def memory_of(layer):
    finals = [np.random.default_rng(i).normal(size=(2, 6)) for i in range(2)]
    memory = {"values": VALUES, "final_states": finals}
    memory = keras.tree.map_structure(lambda x: keras.ops.cast(x, layer.compute_dtype), memory)
    return {**memory, "mask": MASK}


def unroll(layer, tokens, **training):
    return layer.unroll(tokens, memory_of(layer), **training)[0]


def call(layer, inputs, **training):
    return layer(inputs, **training)


def attend(layer, inputs, **training):
    return layer(inputs, mask=MASK, **training)[0]


# Each: how to create it, how to call it, its inputs.
LAYERS = {
    "multi_head": (functools.partial(MultiHeadAttention, 2, 8), attend, VECTORS),
    "feed_forward": (functools.partial(FeedForward, 5), call, VECTORS),
    "encoder_block": (functools.partial(EncoderBlock, **BLOCK), call, VECTORS),
    "token_embedding": (functools.partial(TokenEmbedding, 9, 4, scale=True), call, IDS),
    "point_embedding": (functools.partial(PointEmbedding, 64), call, POINTS),
    "recurrent_encoder": (functools.partial(RecurrentEncoder, 9, **RECURRENT), encode, IDS),
    "transformer_encoder": (functools.partial(TransformerEncoder, 9, **TRANSFORMER), encode, IDS),
    "embedding_encoder": (functools.partial(EmbeddingEncoder, 9, 4), encode, IDS),
    "convolutional_encoder": (functools.partial(ConvolutionalEncoder, **IMAGE), encode, IMAGES),
    "luong": (functools.partial(LuongDecoder, **TEXT), unroll, TOKENS),
    "bahdanau": (functools.partial(BahdanauDecoder, **TEXT, cell="gru"), unroll, TOKENS),
    "transformer_decoder": (
        functools.partial(TransformerDecoder, **DECODER, **TRANSFORMER),
        unroll,
        TOKENS,
    ),
    "feed_forward_decoder": (
        functools.partial(FeedForwardDecoder, **FEED_FORWARD, attention={"score": "general"}),
        unroll,
        TOKENS,
    ),
    "pointer_decoder": (functools.partial(PointerDecoder, **POINTER), unroll, CHOICES),
}


def created(name, **settings):
    """A layer whose random weights do not depend on the settings, and a function that calls it."""
    create, call, inputs = LAYERS[name]
    layer = create(**settings)
    call(layer, inputs) if not hasattr(layer, "unroll") else layer.build()
    random = np.random.default_rng(3)
    for weight in layer.trainable_weights:
        weight.assign((weight.name == "gamma") + random.normal(size=weight.shape) * 0.3)
    return layer, functools.partial(call, layer, inputs)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, {"dropout": 0.5}) for name in LAYERS),
        ("encoder_block", {"attention_dropout": 0.5}),
        ("encoder_block", {"activation_dropout": 0.5}),
    ],
    ids=str,
)
def test_dropout_only_in_training(name, settings):
    _, compute = created(name, **settings)
    still = numpy(compute())
    assert_close(still, numpy(created(name)[1]()))
    np.testing.assert_array_equal(still, numpy(compute()))
    assert not np.allclose(still, numpy(compute(training=True)))


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        *((name, "mixed_float16") for name in LAYERS),
        *((name, "mixed_bfloat16") for name in ("multi_head", "luong", "transformer_decoder")),
    ],
)
def test_low_precision_is_close_and_keeps_its_weights_in_float32(name, policy):
    layer, compute = created(name, dtype=policy)
    result, expected = compute(), numpy(created(name)[1]())
    low = policy.removeprefix("mixed_")
    result_type = "float32" if name == "pointer_decoder" else low
    assert keras.backend.standardize_dtype(result.dtype) == result_type
    assert {weight.dtype for weight in layer.trainable_weights} == {"float32"}
    assert_close(numpy(result), expected, low, roundings=10)


@pytest.mark.parametrize("name", [name for name, layer in LAYERS.items() if layer[1] is unroll])
def test_a_step_in_low_precision_is_close(name):
    layer, _ = created(name, dtype="mixed_bfloat16")
    expected = numpy(created(name)[1]())[:, 0]
    result, state, _ = layer.step(LAYERS[name][2][:, 0], layer.start(memory_of(layer), 3))
    assert_close(numpy(result), expected, "bfloat16", roundings=10)
    state = state.get("shared_cache", state)
    carried = state.get("cells", state.get("caches", []))
    kinds = {keras.backend.standardize_dtype(x.dtype) for x in keras.tree.flatten(carried)}
    assert kinds == (set() if name == "feed_forward_decoder" else {"bfloat16"})


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, {}) for name in LAYERS),
        slow("transformer_encoder", {"norm": "post", "positions": "learned", "activation": "gelu"}),
        slow("transformer_encoder", {"positions": "rotary", "activation": "swiglu"}),
        slow("transformer_decoder", {"norm": "post", "positions": "learned", "tied": True}),
        ("transformer_decoder", {"positions": "rotary", "attention": {"alignment": "local_m"}}),
    ],
    ids=str,
)
def test_compiled_equals_eager(name, settings):
    # One layer compiles in half the time of two.
    stack = {"layers": 1} if "layers" in LAYERS[name][0].keywords else {}
    _, compute = created(name, **stack, **settings)
    compiled = tf.function(compute, jit_compile=True)
    assert_close(compiled(), compute())


@pytest.mark.parametrize(
    ("create", "settings", "message"),
    [
        (
            ALIGNMENTS["hard"],
            {"training": "reinforced"},
            "'reinforced'.*straight_through",
        ),
        (ALIGNMENTS["hard"], {"expectation": 1.5}, "expectation must be at most 1.0, not 1.5"),
        (
            ALIGNMENTS["hard"],
            {"inference": "smaple"},
            "'smaple'.*argmax, sample",
        ),
        (ALIGNMENTS["thresholded"], {"threshold": 1.0}, "threshold must be below 1.0, not 1.0"),
        (SCORES["additive"], {"layers": 0}, "layers must be at least 1, not 0"),
        (SCORES["low_rank"], {"rank": 0}, "rank must be at least 1, not 0"),
        (Attention, {"values": "apart"}, "Unknown values 'apart'. Choices: shared, split"),
        (MultiHeadAttention, {"heads": 1, "width": 8, "values": "both"}, "Unknown values 'both'"),
        (ALIGNMENTS["top_k"], {"k": 0}, "k must be at least 1"),
        (ALIGNMENTS["local_m"], {"window": 0}, "window must be at least 1, not 0"),
        (ALIGNMENTS["local_p"], {"window": -1}, "window must be at least 1, not -1"),
        (ALIGNMENTS["local_p"], {"units": 0}, "units must be at least 1, not 0"),
        (SCORES["additive"], {"units": 0}, "at least 1, not 0"),
        (SCORES["concat"], {"units": -3}, "at least 1, not -3"),
        (SCORES["cosine"], {"strength": 0.0}, "strength must be above 0"),
        (SCORES["location"], {"max_source": 0}, "max_source must be at least 1"),
        (Attention, {"score": {"type": "gneral"}}, "Did you mean general"),
        (Attention, {"alignment": "sofd"}, "Did you mean soft"),
        (MultiHeadAttention, {"heads": 3, "width": 8}, "8 cannot be divided into 3"),
        (MultiHeadAttention, {"heads": 0, "width": 8}, "8 cannot be divided into 0"),
        (Pointer, {"clip": 0.0}, "above 0"),
        (FeedForward, {"inner": 4, "activation": "rleu"}, "'rleu'. Did you mean relu"),
        (GridPositions, {"positions": "rotary"}, "Unknown positions 'rotary'"),
        (POSITIONS["learned"], {"max_positions": 0}, "at least 1, not 0"),
        (EncoderBlock, {**BLOCK, "norm": "none"}, "'none'. Choices: post, pre"),
        ("recurrent_encoder", {"cell": "grru"}, "Unknown cell 'grru'. Did you mean gru"),
        ("transformer_encoder", {"positions": "sinusoid"}, "Did you mean sinusoidal"),
        ("transformer_encoder", {"heads": 3}, "8 cannot be divided into 3"),
        ("luong", {"cell": "lstn"}, "Unknown cell 'lstn'. Did you mean lstm"),
        ("luong", {"initial_state": "nothing"}, "'nothing'. Choices: encoder, zeros"),
        ("luong", {"tied": True}, "3 and 4"),
        ("luong", {"attention": {"score": "dott"}}, "Did you mean dot"),
        ("bahdanau", {"readout": "softmax"}, "readout 'softmax'. Choices: maxout, tanh"),
        ("transformer_decoder", {"attention": {"score": "scaled_do"}}, "Did you mean scaled_dot"),
        ("transformer_decoder", {"heads": 5}, "8 cannot be divided into 5"),
        ("pointer_decoder", {"visits": "twice"}, "'twice'. Choices: all, any, once"),
        ("pointer_decoder", {"cell": "lstn"}, "Did you mean lstm"),
        ("pointer_decoder", {"score": "addditive"}, "Did you mean additive"),
        ("pointer_decoder", {"clip": 0.0}, "above 0, not 0.0"),
        ("pointer_decoder", {"score": "dot", "units": 4}, "same depth, but they have 4 and 5"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_invalid_settings(create, settings, message):
    create = LAYERS[create][0] if isinstance(create, str) else create
    with pytest.raises(ValueError, match=message):
        create(**settings).build()
