"""The encoder of images, with each kind of positions and with self-attention."""

import keras
import numpy as np

from regard.models.encoders.convolutional import ConvolutionalEncoder

IMAGES = np.random.default_rng(6).integers(0, 256, (2, 8, 12, 3)).astype("uint8")


def outputs():
    for positions, self_attention in (("none", True), ("sinusoidal", False), ("learned", False)):
        encoder = ConvolutionalEncoder(
            (8, 12), (8, 8), units=5, positions=positions, self_attention=self_attention
        )
        encoder.build()
        random = np.random.default_rng(0)
        encoder.set_weights([random.normal(size=w.shape) * 0.3 for w in encoder.get_weights()])
        answer = encoder
        if keras.backend.backend() == "jax":  # operation by operation it compiles for a minute
            import jax

            answer = jax.jit(encoder)
        yield answer(IMAGES)["values"]
