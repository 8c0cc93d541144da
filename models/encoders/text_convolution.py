"""The convolutional encoder of texts."""

from typing import Any

import keras
from keras import ops

from regard.models.encoders.embedding import EmbeddingEncoder
from regard.models.layers.dropout import Dropout
from regard.models.layers.loops import windows
from regard.models.serialization import register
from regard.models.tensors import Memory, Tensor


@register
class TextConvolutionEncoder(EmbeddingEncoder):
    """A stack of gated convolutions over the source, each with a residual connection.

    Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", §3.2: x + GLU(conv(x)),
    times the square root of 1/2 (§3.4), after a projection of the embeddings. Padding is 0 in front
    of every convolution, so it does not change the result of a row.

    Args:
        vocabulary: the size of the source vocabulary, as in ``source_embedding``.
        embedding: the depth of the embeddings.
        dropout: the dropout rate of the embeddings, of the input of every convolution, and without
            ``pooling`` of the memory.
        units: the depth of every layer and of the memory.
        layers: the number of convolutions.
        kernel_size: the number of positions that a convolution combines.
        pooling: after every convolution take the maximum of each pair of positions and its tanh, in
            place of the gate and the residual connection (Rush et al. 2015, §3.2). This halves the
            length; in the memory each position has the vector of its group of ``2 ** layers``.
        kwargs: as in ``EmbeddingEncoder``; the paper has ``learned`` positions (§3.1).

    Shapes: ids ``[batch, source]`` → a memory, a dictionary of ``values`` ``[batch, source,
    units]`` (zero at padding) and ``mask`` ``[batch, source]``.
    """

    def __init__(
        self,
        vocabulary: int | None,
        embedding: int = 256,
        dropout: float = 0.0,
        units: int = 256,
        layers: int = 4,
        kernel_size: int = 3,
        pooling: bool = False,
        **kwargs: Any,
    ):
        super().__init__(vocabulary, embedding, dropout, **kwargs)
        self.settings = {
            **self.settings,
            "units": units,
            "layers": layers,
            "kernel_size": kernel_size,
            "pooling": pooling,
        }
        self.pooling = pooling
        policy = self.dtype_policy
        self.project = keras.layers.Dense(units, dtype=policy, name="project")
        # §3.5: the gates divide the variance by 4, and dropout multiplies it by 1 / (1 - rate).
        scale = 1.0 if pooling else 4.0 * (1.0 - dropout)
        self.convolutions = [
            keras.layers.Dense(
                units if pooling else 2 * units,
                kernel_initializer=keras.initializers.VarianceScaling(scale, "fan_in"),
                dtype=policy,
                name=f"layer_{i}",
            )
            for i in range(layers)
        ]
        self.dropout = Dropout(dropout, dtype=policy)

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["units"])

    def build(self, ids_shape: Any = None) -> None:
        super().build(ids_shape)
        self.project.build((None, None, self.settings["embedding"]))
        for convolution in self.convolutions:
            convolution.build((None, None, self.depth * self.settings["kernel_size"]))

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        memory = super().call(ids, training)
        valid = ops.cast(memory["mask"][..., None], memory["values"].dtype)
        values = self.project(memory["values"]) * valid
        for convolution in self.convolutions:
            outputs = convolution(self._windows(self.dropout(values, training=training)))
            if self.pooling:
                # tanh is above -1, so padding is never the maximum of a pair.
                outputs = (ops.tanh(outputs) + 1.0) * valid - 1.0
                odd = ops.pad(outputs, [[0, 0], [0, 1], [0, 0]], constant_values=-1.0)[:, 1::2]
                valid = valid[:, ::2]
                values = ops.maximum(outputs[:, ::2], odd) * valid
            else:
                linear, gate = ops.split(outputs, 2, axis=-1)
                values = (values + linear * ops.sigmoid(gate)) * valid * 0.5**0.5
        if not self.pooling:
            return {**memory, "values": self.dropout(values, training=training)}
        # No dropout: the largest of the copies of a vector would never be a dropped one.
        length, times = ops.shape(memory["values"])[1], 2 ** len(self.convolutions)
        values = ops.repeat(values, times, axis=1)[:, :length]
        return {**memory, "values": values * ops.cast(memory["mask"][..., None], values.dtype)}

    def _windows(self, values: Tensor) -> Tensor:
        """Return the neighbours of each position, concatenated.

        One product of them is a convolution. Unlike TensorFlow's on CPUs, it can have no rows.
        """
        size = self.settings["kernel_size"]
        padded = ops.pad(values, [[0, 0], [(size - 1) // 2, size // 2], [0, 0]])
        return ops.concatenate(windows(padded, size), axis=-1)
