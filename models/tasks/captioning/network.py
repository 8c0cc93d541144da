"""The network of captioning."""

import io
from collections.abc import Mapping

import numpy as np
from PIL import Image

from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.captioning.description import CaptioningModelConfig
from regard.models.tasks.network import Rows, dtype_policy
from regard.models.tasks.seq2seq_network import TextOutputNetwork


class CaptioningNetwork(TextOutputNetwork):
    """A sequence-to-sequence model whose source is an image."""

    variable_axes = {"source": (), "target": (1,)}

    def source_input(self, rows: Rows) -> np.ndarray:
        """Return the images as uint8 ``[batch, height, width, 3]``."""
        return np.stack([np.asarray(Image.open(io.BytesIO(png))) for png in rows["image"].values])

    def build(
        self,
        model: CaptioningModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Seq2Seq:
        encoder = ConvolutionalEncoder(
            (model.image.height, model.image.width),
            dropout=model.dropout,
            dtype=dtype_policy(training),
            **model.encoder.to_kwargs(),
        )
        return self.build_seq2seq(encoder, model, training, vocabulary_sizes)
