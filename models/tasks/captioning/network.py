"""The network of captioning."""

import io
from collections.abc import Mapping

import numpy as np
from keras import ops
from PIL import Image

from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.captioning.description import CaptioningModelConfig
from regard.models.tasks.greedy_decoding import OutputLimits
from regard.models.tasks.network import Rows, dtype_policy
from regard.models.tasks.seq2seq_network import TextOutputNetwork


class CaptioningNetwork(TextOutputNetwork):
    """A sequence-to-sequence model whose source is an image."""

    variable_axes = {"source": (), "target": (1,)}

    def source_input(self, rows: Rows) -> np.ndarray:
        """Return the images as uint8 ``[batch, height, width, 3]``."""
        return np.stack([np.asarray(Image.open(io.BytesIO(png))) for png in rows["image"].values])

    def output_limits(self, search: SearchLimits) -> OutputLimits:
        return limits_of_images(search.longest_output)

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


def limits_of_images(longest_output: int) -> OutputLimits:
    """Return the limits for images, which are the same for all: this number of tokens and EOS."""
    return OutputLimits(
        of_rows=lambda images: ops.full((ops.shape(images)[0],), longest_output + 1, dtype="int32"),
        longest=lambda shape: longest_output + 1,
    )
