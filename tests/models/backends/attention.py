"""Every score and every alignment once, windows, pointers and rewards; what is sampled too."""

import keras
import numpy as np

from regard.models.attention import ALIGNMENTS, SCORES, Attention, MultiHeadAttention, Pointer
from regard.models.attention.alignments.local import attend_in_windows
from regard.models.attention.base import MASK_BIAS
from regard.models.layers.cells import LSTMCell
from regard.models.layers.loops import can_grow
from regard.models.layers.normalization import LayerNormalization
from regard.models.layers.pooling import MeanPooling
from regard.models.layers.positions import SinusoidalPositions
from regard.models.reinforce import Reinforce
from tests.models.test_backends import compiled

random = np.random.default_rng(0)
QUERY, MEMORY = random.normal(size=(3, 2, 4)), random.normal(size=(3, 5, 4))
MASK = np.arange(5) < np.array([5, 2, 0])[:, None]


def filled(layer, memory=True):
    layer.build((None, None, 4), *([(None, None, 4)] if memory else []))
    for weight in layer.trainable_weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def layers():
    """Keras's masks through models, values of their own, split memories and samples."""
    ids = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(9, 4, mask_zero=True)
    query, memory = map(embedding, ids)
    deep = Attention({"type": "concat", "layers": 2}, "thresholded", values="split")
    sampled = Attention("dot", {"type": "hard", "inference": "sample", "seed": 4})
    context, weights = deep(query, memory, mask=keras.ops.ones_like(ids[1], dtype="bool"))
    positioned = SinusoidalPositions()(query)
    results = [
        *(context, weights, MeanPooling()(positioned)[0]),
        *sampled(query, memory, return_scores=True),
        *MultiHeadAttention(2, 4)(query, memory, memory, return_distribution=True),
        keras.layers.RNN(LSTMCell(3))(positioned),
        keras.layers.GlobalAveragePooling1D()(context),  # which needs the mask of the query
    ]
    model = keras.Model(ids, results)
    for weight in model.trainable_weights:
        weight.assign(np.random.default_rng(8).normal(size=weight.shape))
    inputs = [np.array([[4, 5, 0], [3, 6, 7]]), np.array([[1, 2, 3, 4], [6, 7, 0, 0]])]
    yield from model(inputs)
    trained = keras.Model(ids, MeanPooling()(LayerNormalization()(results[6]))[0])
    trained.compile(keras.optimizers.SGD(0.1), "mse")
    yield trained.fit(inputs, np.eye(2, 4), epochs=2, verbose=0).history["loss"]


def heads():
    """The three ways to use several heads: at once, a query at a time, and step by step."""
    query, memory = QUERY.astype("float32"), MEMORY.astype("float32")
    for score, alignment in (("scaled_dot", "soft"), ("additive", "local_p")):
        options = {"mask": MASK, "causal": True, "per_head": True, "return_scores": True}
        attention = filled(MultiHeadAttention(2, 4, score, alignment))
        yield from attention(query, memory, **options)
        yield from attention.attend_once(query[:, 0], attention.prepare(memory, MASK), 0)
    attention = filled(MultiHeadAttention(2, 4, relative="relative"), memory=False)
    yield from attention(query, causal=True)
    cache = attention.cache(3, 0 if can_grow() else 2)
    for t in range(2):
        is_past = np.arange(t + 1 if can_grow() else 2) <= t
        bias = keras.ops.where(np.broadcast_to(is_past, (3, 1, len(is_past))), 0.0, MASK_BIAS)
        output, cache = attention.step(query[:, t], cache, bias, t)
        yield output


def outputs():
    # Each score and each alignment once; what is sampled is the same too.
    pairs = [(score, "soft") for score in sorted(SCORES)]
    straight = {"type": "hard", "seed": 3, "expectation": 0.5}
    hard = {**straight, "training": "reinforce"}
    pairs += [("general", each) for each in (*sorted(set(ALIGNMENTS) - {"hard"}), hard, straight)]
    for score, alignment in pairs:
        attention = filled(Attention(score, alignment))

        def answers(query, memory, attention=attention):
            prepared = attention.prepare(memory, MASK)
            result = attention.attend_with_distribution(query, prepared)
            if attention.alignment.draw_key() is None:
                return result
            prepared = attention.alignment.with_random_key(prepared)
            return *result, *attention.attend_with_distribution(query, prepared, training=True)

        yield from compiled(answers)(QUERY.astype("float32"), MEMORY.astype("float32"))
    yield from layers()
    yield from heads()
    for score in ("general", "location"):
        attention = filled(Attention(score, {"type": "local_p", "window": 1}))

        def answers(query, memory, attention=attention):
            prepared, position = attention.prepare(memory, MASK), np.array([[0, 1]])
            layers = attention.score, attention.alignment
            return attend_in_windows(*layers, query, prepared, position)

        yield from compiled(answers)(QUERY.astype("float32"), MEMORY.astype("float32"))
    yield compiled(filled(Pointer(clip=3.0)))(QUERY, MEMORY, MASK)
    weights = keras.ops.softmax(QUERY)
    layer = Reinforce()
    yield layer(QUERY[..., 0], weights, weights, np.ones((3, 2)), training=True)
    yield layer.baseline
