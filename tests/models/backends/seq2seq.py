"""A whole model: teacher forcing, a search, two steps of training with samples."""

import keras
import numpy as np

from regard.models.decoders import FeedForwardDecoder, LuongDecoder
from regard.models.encoders import EncoderStack, RecurrentEncoder, TextConvolutionEncoder
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
    yield from stack_outputs()
    yield from feed_forward_outputs()


def feed_forward_outputs():
    """Neural language models with attention, and with convolutions of pairs of positions."""
    for options in ({"attention": {}}, {"pooling": "max"}):
        encoder = TextConvolutionEncoder(9, embedding=3, units=4, layers=2, pooling=True)
        decoder = FeedForwardDecoder(8, encoder.depth, embedding=3, units=4, **options)
        model = Seq2Seq(encoder, decoder)
        model.build()
        random = np.random.default_rng(2)
        model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
        yield from compiled(model.teacher_force)(SOURCE, TARGET)
        yield from model.search(SOURCE, BeamSearch(3, 0.6), np.array([6, 7]))


def stack_outputs():
    """Convolutions, Elman cells and self-attention, with several heads in the decoder."""
    encoders = [
        {"type": "convolutional", "units": 4, "layers": 1},
        {"type": "recurrent", "units": 2, "cell": "rnn"},
        {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 4, "positions": "none"},
    ]
    encoder = EncoderStack(9, encoders, embedding=3)
    attention = {"score": "general", "heads": 2}
    decoder = LuongDecoder(
        8, encoder.depth, encoder.final_depth, embedding=3, units=4, cell="rnn", attention=attention
    )
    model = Seq2Seq(encoder, decoder)
    model.build()
    random = np.random.default_rng(1)
    model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
    yield from compiled(model.teacher_force)(SOURCE, TARGET)
