"""Similarities with every pooling, with and without attention to the other sentence."""

import numpy as np
from keras import ops

from regard.models.encoders import EmbeddingEncoder, RecurrentEncoder, TransformerEncoder
from regard.models.similarity import Similarity
from tests.models.test_backends import compiled

FIRST = np.array([[5, 6, 7, 4], [4, 3, 0, 0]], "int32")
SECOND = np.array([[6, 7, 0], [4, 5, 8]], "int32")
CROSS = {"units": 4, "attention": {"score": "additive"}}
MODELS = [
    (EmbeddingEncoder, {}, {"pooling": "mean", "comparison": "cosine"}),
    (EmbeddingEncoder, {}, {"pooling": "max", "cross": CROSS}),
    (RecurrentEncoder, {"units": 3}, {"pooling": "gate"}),
    (RecurrentEncoder, {"units": 3, "cell": "gru"}, {"pooling": "top_down"}),
    (
        TransformerEncoder,
        {"layers": 1, "heads": 2, "feed_forward": 5},
        {"pooling": {"type": "self_attention", "units": 4, "penalty": 0.1}},
    ),
]


def outputs():
    random = np.random.default_rng(0)
    for make, reading, settings in MODELS:
        model = Similarity(make(9, embedding=6, **reading), hidden=5, **settings)
        model.build()
        model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])

        def loss(inputs, model=model):
            return model.compute_loss(inputs, y_pred=model(inputs))

        result = compiled(model.compare)(FIRST, SECOND)
        yield from (result[name] for name in sorted(result) if result[name] is not None)
        score = ops.convert_to_tensor([0.2, 0.9], "float32")  # PyTorch subtracts no arrays
        inputs = {"first": FIRST, "second": SECOND, "score": score}
        yield compiled(loss)(inputs)
