"""The encoder of images: each cell of a grid of features is a position of the memory."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.layers.dropout import Dropout
from regard.models.layers.grid import Coordinates, GridPositions, GridSelfAttention
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Memory, Tensor

_MAX_PIXEL = 255.0


@register
class ConvolutionalEncoder(ConfiguredLayer):
    """A stack of convolution stages, each of which halves the sides of the image.

    Xu et al. 2015, "Show, Attend and Tell", §3.1.1: features of a lower layer, so that the decoder
    can attend to parts of the image; here trained with the decoder. A stage is two 3 x 3
    convolutions, the second with stride 2, each normalised over the depth per position (Ba et al.
    2016), so that a cell has no information about distant cells and its attention weight can be
    interpreted. Each cell also contains its coordinates.

    Args:
        size: height and width of the images; multiples of 2 ** number of stages.
        channels: the depth of each stage.
        units: the depth of the memory.
        dropout: the dropout rate of the memory.
        self_attention: whether cells attend to each other (``GridSelfAttention``).
        positions: the positions that are added to the cells, as in ``GridPositions``; or ``none``.

    Shapes: images ``[batch, height, width, 3]``, numbers from 0 to 255 → a memory, a dictionary
    of ``values`` ``[batch, cells, units]``, row by row from the upper left corner, and ``mask``
    ``[batch, cells]``, which is true everywhere.
    """

    final_depth = 0  # there are no final states

    def __init__(
        self,
        size: Sequence[int] = (64, 64),
        channels: Sequence[int] = (32, 64, 128),
        units: int = 128,
        dropout: float = 0.0,
        self_attention: bool = False,
        positions: str = "none",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        size, channels = tuple(size), tuple(channels)
        self.settings = constructor_arguments(locals())
        factor = 2 ** len(channels)
        policy = self.dtype_policy
        self.grid = (size[0] // factor, size[1] // factor)
        self.stages = [
            self._create_stage(f"{i}_{stride}", depth, stride)
            for i, depth in enumerate(channels)
            for stride in (1, 2)
        ]
        self.self_attention = (
            GridSelfAttention(dtype=policy, name="self_attention") if self_attention else None
        )
        self.coordinates = Coordinates(dtype=policy, name="coordinates")
        self.project = keras.layers.Dense(units, activation="relu", dtype=policy, name="project")
        self.positions = None
        if positions != "none":
            self.positions = GridPositions(positions, self.grid, dtype=policy, name="positions")
        self.dropout = Dropout(dropout, dtype=policy)

    def _create_stage(self, name: str, depth: int, stride: int) -> tuple[Any, Any]:
        """Return a convolution and the normalization of its outputs."""
        policy = self.dtype_policy
        convolution = keras.layers.Conv2D(
            depth, 3, strides=stride, padding="same", dtype=policy, name=f"conv_{name}"
        )
        return convolution, keras.layers.LayerNormalization(dtype=policy, name=f"norm_{name}")

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["units"])

    @property
    def cells(self) -> int:
        """The number of positions of the memory."""
        return self.grid[0] * self.grid[1]

    def build(self, images_shape: Any = None) -> None:
        depth = 3 + 2
        for convolution, norm in self.stages:
            convolution.build((None, None, None, depth))
            depth = convolution.filters
            norm.build((None, None, depth))
        if self.self_attention is not None:
            self.self_attention.build((None, *self.grid, depth))
        self.project.build((None, None, depth + 2))
        if self.positions is not None:
            self.positions.build((None, *self.grid, self.depth))

    def call(self, images: Tensor, training: bool = False) -> Memory:
        # The static size of a decoded image is unknown, and the grid needs it.
        images = ops.reshape(images, (-1, *self.settings["size"], 3))
        features = ops.cast(images, self.compute_dtype) / _MAX_PIXEL - 0.5
        features = self.coordinates(features)
        height, width = self.settings["size"]
        for convolution, norm in self.stages:
            stride = convolution.strides[0]
            height, width = height // stride, width // stride
            # For an empty batch TensorFlow's convolution on CPUs returns a wrong depth; reshaping
            # corrects it.
            cells = ops.reshape(convolution(features), (-1, height * width, convolution.filters))
            cells = ops.relu(norm(cells))
            features = ops.reshape(cells, (-1, height, width, convolution.filters))
        if self.self_attention is not None:
            features = self.self_attention(features)
        features = self.project(self.coordinates(features))
        if self.positions is not None:
            features = self.positions(features)
        values = ops.reshape(features, (-1, self.cells, self.depth))
        mask = ops.ones(ops.shape(values)[:2], dtype="bool")
        return {"values": self.dropout(values, training=training), "mask": mask}
