"""Pointers of each kind, unrolled; one of them searched and trained."""

import keras
import numpy as np

from regard.models.decoders import PointerDecoder
from regard.models.encoders import RecurrentEncoder, TransformerEncoder
from regard.models.search import BeamSearch
from regard.models.seq2seq import Seq2Seq
from tests.models.test_backends import compiled

POINTS = np.array([[[0.3, -0.2, 1], [-1, 0.5, 1], [1, 0.1, 1]], [[-1, 1, 1], [1, -1, 1], [0] * 3]])
TARGET = np.array([[6, 4, 5, 3], [5, 4, 3, 0]], "int32")
TRANSFORMER = {"layers": 1, "heads": 2, "feed_forward": 5, "positions": "none"}
KINDS = [
    (TransformerEncoder, TRANSFORMER, {"glimpse": True, "clip": 5.0, "visits": "all"}),
    (RecurrentEncoder, {"units": 3}, {"cell": "gru", "layers": 2, "visits": "once"}),
    (RecurrentEncoder, {"units": 3, "cell": "gru"}, {"score": "general", "visits": "any"}),
]


def outputs():
    points = POINTS.astype("float32")
    for make, reading, pointing in KINDS:
        encoder = make(None, embedding=6, **reading)
        decoder = PointerDecoder(encoder.depth, encoder.final_depth, units=5, **pointing)
        model = Seq2Seq(encoder, decoder)
        model.build()
        random = np.random.default_rng(0)
        model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
        yield from compiled(model.teacher_force)(points, TARGET)
    yield from model.search(points, BeamSearch(3, 0.6), np.array([4, 3]))
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    data = {"source": points, "target": TARGET}
    yield model.fit(data, epochs=2, verbose=0, shuffle=False).history["plain_loss"]
