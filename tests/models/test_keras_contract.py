"""The layers pass the checks that Keras's own layers pass.

`run_layer_test` builds a layer from a shape, calls it with symbolic and eager tensors, rebuilds it
from its configuration, compares the number of weights each time, checks dtypes under mixed
precision, and trains one compiled step, unless the layer has several inputs or outputs, or
``test_layers.py`` compiles it.
"""

import pytest
from keras.src.testing import TestCase

from regard.models.attention import ALIGNMENTS, SCORES, Attention, MultiHeadAttention, Pointer
from regard.models.encoders import (
    EmbeddingEncoder,
    RecurrentEncoder,
    TextConvolutionEncoder,
    TransformerEncoder,
)
from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.layers.embeddings import PointEmbedding, TokenEmbedding
from regard.models.layers.feed_forward import FeedForward
from regard.models.layers.grid import GridPositions, GridSelfAttention
from regard.models.layers.pooling import POOLINGS
from regard.models.layers.positions import POSITIONS
from regard.models.layers.transformer import EncoderBlock

IDS, VECTORS, GRID, IMAGES = (2, 5), (2, 5, 8), (2, 3, 4, 8), (2, 16, 24, 3)
STACK = {"layers": 1, "heads": 2, "feed_forward": 6}
TEXT = {"vocabulary": 9, "embedding": 8}
QUERY_AND_KEYS = {"query_shape": (2, 3, 8), "keys_shape": VECTORS}
QUERY_AND_MEMORY = {"query_shape": (2, 3, 8), "memory_shape": VECTORS}

# The class, its arguments, the shape of its input and of its output.
TRAINED = [
    (PointEmbedding, {"depth": 4}, (2, 5, 3), (2, 5, 4)),
    *((kind, {"max_positions": 9}, VECTORS, VECTORS) for kind in POSITIONS.values()),
    (GridPositions, {"positions": "learned", "size": (3, 4)}, GRID, GRID),
    (GridSelfAttention, {}, GRID, GRID),
    *(
        (ALIGNMENTS[name], {}, (2, 3, 5), (2, 3, 5))
        for name in ("hard", "soft", "sparsemax", "thresholded", "top_k")
    ),
]
UNTRAINED = [
    (FeedForward, {"inner": 5, "dropout": 0.2}, VECTORS, VECTORS),
    (EncoderBlock, {"width": 8, "heads": 2, "feed_forward": 6}, VECTORS, VECTORS),
    (TokenEmbedding, {"vocabulary": 9, "depth": 4, "dropout": 0.2}, IDS, (2, 5, 4)),
    *((kind, {}, VECTORS, None) for _, kind in sorted(POOLINGS.items()) if not kind.needs_guide),
    (EmbeddingEncoder, TEXT, IDS, None),
    (RecurrentEncoder, {**TEXT, "units": 4, "layers": 1}, IDS, None),
    (TextConvolutionEncoder, {**TEXT, "units": 4, "layers": 1}, IDS, None),
    (TransformerEncoder, {**TEXT, **STACK}, IDS, None),
    (ConvolutionalEncoder, {"size": (16, 24), "channels": (4, 4), "units": 6}, IMAGES, None),
]
SEVERAL_INPUTS = [
    *((kind, {}, QUERY_AND_KEYS, (2, 3, 5)) for _, kind in sorted(SCORES.items())),
    (Attention, {}, QUERY_AND_MEMORY, ((2, 3, 8), (2, 3, 5))),
    (MultiHeadAttention, {"heads": 2, "width": 8}, QUERY_AND_MEMORY, ((2, 3, 8), (2, 3, 5))),
    (Pointer, {}, QUERY_AND_MEMORY, (2, 3, 5)),
]


def names(cases):
    return [case[0].__name__ for case in cases]


def check(layer_class, settings, shape, output_shape, **options):
    TestCase().run_layer_test(
        layer_class,
        init_kwargs=settings,
        input_shape=shape,
        expected_output_shape=output_shape,
        **options,
    )


@pytest.mark.parametrize(
    ("layer_class", "settings", "shape", "output_shape"), TRAINED, ids=names(TRAINED)
)
def test_with_a_training_step(layer_class, settings, shape, output_shape):
    check(layer_class, settings, shape, output_shape)


@pytest.mark.parametrize(
    ("layer_class", "settings", "shape", "output_shape"), UNTRAINED, ids=names(UNTRAINED)
)
def test_without_a_training_step(layer_class, settings, shape, output_shape):
    dtype = {2: "int32", 3: "float32", 4: "uint8"}[len(shape)]
    check(
        layer_class,
        settings,
        shape,
        output_shape,
        input_dtype=dtype,
        run_training_check=False,
    )


@pytest.mark.parametrize(
    ("layer_class", "settings", "shapes", "output_shape"), SEVERAL_INPUTS, ids=names(SEVERAL_INPUTS)
)
def test_several_inputs(layer_class, settings, shapes, output_shape):
    check(layer_class, settings, shapes, output_shape, run_training_check=False)
