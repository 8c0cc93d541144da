"""The encoder of images, with each kind of positions and with self-attention."""

import numpy as np

from regard.models.encoders.convolutional import ConvolutionalEncoder
from tests.models.test_backends import compiled

IMAGES = np.random.default_rng(6).integers(0, 256, (2, 8, 12, 3)).astype("uint8")


def outputs():
    for positions, self_attention in (("none", True), ("sinusoidal", False), ("learned", False)):
        encoder = ConvolutionalEncoder(
            (8, 12), (8, 8), units=5, positions=positions, self_attention=self_attention
        )
        encoder.build()
        random = np.random.default_rng(0)
        encoder.set_weights([random.normal(size=w.shape) * 0.3 for w in encoder.get_weights()])
        yield compiled(encoder)(IMAGES)["values"]
