"""Answers in passages with recurrent layers and Transformers."""

import numpy as np
from keras import ops

from regard.models.encoders import EmbeddingEncoder, RecurrentEncoder, TransformerEncoder
from regard.models.layers.answer_pointer import best_spans
from regard.models.span import SpanReader
from tests.models.test_backends import compiled

INPUTS = {
    "passage": np.array([[5, 6, 7, 4], [4, 3, 0, 0]], "int32"),
    "question": np.array([[6, 7, 0], [4, 5, 8]], "int32"),
    "answer": np.array([[1, 2], [0, 0]], "int32"),
}
MODELS = [
    (EmbeddingEncoder, {}, TransformerEncoder, {"layers": 1, "heads": 2, "feed_forward": 5}, 0),
    (RecurrentEncoder, {"units": 3, "cell": "gru"}, RecurrentEncoder, {"units": 3}, 2),
]


def outputs():
    random = np.random.default_rng(0)
    for make, reading, make_modelling, modelling, hops in MODELS:
        encoder = make(9, embedding=6, **reading)
        second = make_modelling(
            None, embedding=6, dimensions=4 * encoder.depth, scale=False, **modelling
        )
        model = SpanReader(encoder, second, units=4, hops=hops)
        model.build()
        model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])

        def loss(inputs, model=model):
            outputs = model(inputs)
            return outputs["logits"][0], model.compute_loss(inputs, y_pred=outputs)

        yield from compiled(loss)(INPUTS)
        log_probs = ops.log_softmax(model(INPUTS)["logits"], axis=-1)
        yield from best_spans(log_probs[:, -2], log_probs[:, -1], 2)
