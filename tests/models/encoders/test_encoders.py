"""What every encoder of sequences has to do."""

import keras
import numpy as np
import pytest

from regard.models.encoders import (
    EmbeddingEncoder,
    EncoderStack,
    RecurrentEncoder,
    TextConvolutionEncoder,
    TransformerEncoder,
)
from tests.models.tensors import fill, gradients, numpy
from tests.tolerances import assert_close

LENGTHS = [4, 2, 0]
TOKENS = np.array([[5, 6, 7, 3], [4, 3, 0, 0], [0, 0, 0, 0]], "int32")
POINTS = np.random.default_rng(2).uniform(-1, 1, (3, 4, 3)).astype("float32")
POINTS[..., 2] = 1
POINTS[TOKENS == 0] = 0
RECURRENT = {"embedding": 3, "units": 4}
SMALL = {"layers": 2, "heads": 2, "feed_forward": 6}
TRANSFORMER = {"embedding": 8, **SMALL}
KINDS = {
    "lstm": (RecurrentEncoder, RECURRENT),
    "one direction": (RecurrentEncoder, {**RECURRENT, "layers": 2, "bidirectional": False}),
    "reversed": (RecurrentEncoder, {**RECURRENT, "layers": 2, "cell": "gru", "reverse": True}),
    "residual": (RecurrentEncoder, {**RECURRENT, "layers": 3, "residual": True}),
    "residual, reversed, one direction": (
        RecurrentEncoder,
        {"embedding": 4, "units": 4, "bidirectional": False, "residual": True, "reverse": True},
    ),
    "pre, sinusoidal": (TransformerEncoder, TRANSFORMER),
    "post, learned": (
        TransformerEncoder,
        {**TRANSFORMER, "norm": "post", "positions": "learned", "activation": "gelu"},
    ),
    "rotary": (TransformerEncoder, {**TRANSFORMER, "positions": "rotary", "activation": "swiglu"}),
    "without positions": (TransformerEncoder, {**TRANSFORMER, "positions": "none"}),
    "elman": (RecurrentEncoder, {**RECURRENT, "layers": 2, "cell": "rnn"}),
    "relative": (TransformerEncoder, {**TRANSFORMER, "positions": "relative", "max_distance": 1}),
    "alibi": (TransformerEncoder, {**TRANSFORMER, "positions": "alibi", "norm": "post"}),
    "concatenated": (
        TransformerEncoder,
        {**TRANSFORMER, "positions": "learned", "max_positions": 4, "position_merge": "concat"},
    ),
    "convolutional": (TextConvolutionEncoder, {"embedding": 3, "units": 4, "layers": 2}),
    "wide, learned": (
        TextConvolutionEncoder,
        {"embedding": 3, "kernel_size": 4, "positions": "learned", "max_positions": 4, "layers": 1},
    ),
    "convolutional, pooled": (
        TextConvolutionEncoder,
        {"embedding": 3, "units": 4, "layers": 2, "pooling": True},
    ),
    "stack": (
        EncoderStack,
        {
            "embedding": 3,
            "encoders": [
                {"type": "convolutional", "units": 5, "layers": 1},
                {"type": "recurrent", "units": 4},
                {"type": "transformer", **SMALL, "positions": "relative", "max_distance": 1},
            ],
        },
    ),
    "embeddings with positions": (
        EmbeddingEncoder,
        {"embedding": 4, "positions": "sinusoidal", "position_merge": "concat"},
    ),
    "embedding": (EmbeddingEncoder, {"embedding": 4}),
}
every_case = pytest.mark.parametrize(
    ("kind", "batch"),
    [*((kind, TOKENS) for kind in KINDS), *((kind, POINTS) for kind in KINDS)],
    ids=[f"{kind}, {batch}" for batch in ("tokens", "points") for kind in KINDS],
)


def created(kind, batch, **changes):
    keras.utils.set_random_seed(8)
    create, settings = KINDS[kind]
    encoder = create(10 if batch is TOKENS else None, **settings, **changes)
    encoder.build()
    return fill(encoder, np.random.default_rng(1), 0.5)


@every_case
def test_a_padded_row_gives_what_it_gives_alone(kind, batch):
    encoder = created(kind, batch)
    memory = encoder(batch)
    values, finals = numpy(memory["values"]), memory.get("final_states", [])
    assert values.shape == (3, 4, encoder.depth)
    assert all(final.shape == (3, encoder.final_depth) for final in finals)
    np.testing.assert_array_equal(memory["mask"], TOKENS != 0)
    assert (values[TOKENS == 0] == 0).all()
    for row, length in enumerate(LENGTHS[:2]):
        alone = encoder(batch[row : row + 1, :length])
        assert_close(values[row, :length], alone["values"][0])
        for ours, theirs in zip(finals, alone.get("final_states", []), strict=True):
            assert_close(ours[row], theirs[0])


@every_case
def test_gradients_are_finite_and_reach_every_weight(kind, batch):
    encoder = created(kind, batch, dropout=0.2)

    def value():
        memory = encoder(batch, training=True)
        parts = [memory["values"], *memory.get("final_states", [])]
        return sum(keras.ops.sum(part * keras.ops.abs(part)) for part in parts)

    result = gradients(value, layer=encoder)
    assert all(np.isfinite(gradient).all() for gradient in result)
    for weight, gradient in zip(encoder.trainable_weights, result, strict=True):
        assert np.any(gradient), weight.path
