"""A whole model: teacher forcing, a search, two steps of training with samples."""

import keras
import numpy as np

from regard.models.decoders import LuongDecoder
from regard.models.encoders import RecurrentEncoder
from regard.models.search import BeamSearch
from regard.models.seq2seq import Seq2Seq
from tests.models.test_backends import compiled

SOURCE = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
TARGET = np.array([[4, 5, 3, 0], [7, 6, 5, 3]], "int32")


def outputs():
    size = {"embedding": 6, "units": 8, "layers": 2}
    encoder = RecurrentEncoder(9, **size)
    decoder = LuongDecoder(8, encoder.depth, encoder.final_depth, attention={}, **size)
    sampling = {"schedule": "linear", "minimum": 0.5, "steps": 1}
    model = Seq2Seq(encoder, decoder, scheduled_sampling=sampling)
    model.build()
    model.sampling.seed_generator.state.assign([5, 7])
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
    yield from compiled(model.teacher_force)(SOURCE, TARGET)
    yield from model.search(SOURCE, BeamSearch(3, 0.6), np.array([6, 7]))
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    data = {"source": SOURCE, "target": TARGET}
    yield model.fit(data, epochs=2, verbose=0, shuffle=False).history["plain_loss"]
