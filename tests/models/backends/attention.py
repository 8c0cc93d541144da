"""Every score and every alignment once, windows, pointers and rewards; what is sampled too."""

import keras
import numpy as np

from regard.models.attention import ALIGNMENTS, SCORES, Attention, Pointer
from regard.models.attention.alignments.local import attend_in_windows
from regard.models.reinforce import Reinforce
from tests.models.test_backends import compiled

random = np.random.default_rng(0)
QUERY, MEMORY = random.normal(size=(3, 2, 4)), random.normal(size=(3, 5, 4))
MASK = np.arange(5) < np.array([5, 2, 0])[:, None]


def filled(layer):
    layer.build((None, None, 4), (None, None, 4))
    for weight in layer.trainable_weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def outputs():
    # Each score and each alignment once; what is sampled is the same too.
    pairs = [(score, "soft") for score in sorted(SCORES)]
    hard = {"type": "hard", "seed": 3}
    straight = {**hard, "training": "straight_through"}
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
