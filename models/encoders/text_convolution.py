"""The convolutional encoder of texts."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from regard.models.layers.dropout import Dropout
from regard.models.layers.embeddings import source_embedding
from regard.models.layers.positions import create_positions
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Memory, Tensor


@register
class TextConvolutionEncoder(ConfiguredLayer):
    """A stack of gated convolutions over the source, each with a residual connection.

    Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", §3.2: x + GLU(conv(x)),
    times the square root of 1/2 (§3.4), after a projection of the embeddings. Padding is 0 in front
    of every convolution, so it does not change the result of a row.

    Args:
        vocabulary: the size of the source vocabulary, as in ``source_embedding``.
        embedding: the depth of the embeddings.
        dropout: the dropout rate of the embeddings, of the input of every convolution, and of the
            memory.
        units: the depth of every layer and of the memory.
        layers: the number of convolutions.
        kernel_size: the number of positions that a convolution combines.
        positions: a name in ``POSITIONS``; the paper has ``learned`` ones (§3.1).
        max_positions: the number of learned positions.
        position_merge: ``add`` or ``concat``, as in ``Positions``.
        scale: multiply the embeddings by the square root of their depth, as in
            ``RecurrentEncoder``.

    Shapes: ids ``[batch, source]`` → a memory, a dictionary of ``values`` ``[batch, source,
    units]`` (zero at padding) and ``mask`` ``[batch, source]``.

    Raises:
        ValueError: the positions are unknown, or ``layers`` or ``kernel_size`` is below 1.
    """

    final_depth = 0  # there are no final states

    def __init__(
        self,
        vocabulary: int | None,
        embedding: int = 256,
        dropout: float = 0.0,
        units: int = 256,
        layers: int = 4,
        kernel_size: int = 3,
        positions: str = "none",
        max_positions: int = 1024,
        position_merge: str = "add",
        scale: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        if layers < 1 or kernel_size < 1:
            raise ValueError(
                f"layers and kernel_size must be at least 1, not {layers} and {kernel_size}."
            )
        policy = self.dtype_policy
        self.embedding = source_embedding(
            vocabulary, embedding, dropout, scale, dtype=policy, name="embedding"
        )
        self.positions = create_positions(self.settings, dtype=policy, name="positions")
        self.project = keras.layers.Dense(units, dtype=policy, name="project")
        # §3.5: the gates divide the variance by 4, and dropout multiplies it by 1 / (1 - rate).
        initializer = keras.initializers.VarianceScaling(
            4.0 * (1.0 - dropout), "fan_in", "untruncated_normal"
        )
        self.convolutions = [
            keras.layers.Dense(
                2 * units, kernel_initializer=initializer.clone(), dtype=policy, name=f"layer_{i}"
            )
            for i in range(layers)
        ]
        self.dropout = Dropout(dropout, dtype=policy)

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["units"])

    def build(self, ids_shape: Any = None) -> None:
        if not self.embedding.built:
            self.embedding.build()
        shape = (None, None, self.settings["embedding"])
        self.positions.build(shape)
        self.project.build(shape)
        for convolution in self.convolutions:
            convolution.build((None, None, self.depth * self.settings["kernel_size"]))
        self.built = True

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        mask = self.embedding.mask(ids)
        position = ops.arange(ops.shape(mask)[1])[None]
        vectors = self.positions(self.embedding(ids, training=training), position)
        valid = ops.cast(mask[..., None], vectors.dtype)
        values = self.project(vectors) * valid
        for convolution in self.convolutions:
            windows = self._windows(self.dropout(values, training=training))
            linear, gate = ops.split(convolution(windows), 2, axis=-1)
            values = (values + linear * ops.sigmoid(gate)) * valid * 0.5**0.5
        return {"values": self.dropout(values, training=training), "mask": mask}

    def _windows(self, values: Tensor) -> Tensor:
        """Return the neighbours of each position, concatenated.

        One product of them is a convolution. Unlike TensorFlow's on CPUs, it can have no rows.
        """
        size, length = self.settings["kernel_size"], ops.shape(values)[1]
        padded = ops.pad(values, [[0, 0], [(size - 1) // 2, size // 2], [0, 0]])
        return ops.concatenate([padded[:, i : i + length] for i in range(size)], axis=-1)
