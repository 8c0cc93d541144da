"""Position encodings of Transformers."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Tensor

BASE = 10000.0  # wavelengths of sinusoids and rotations are from 2π to BASE · 2π


class Positions(ConfiguredLayer):
    """Base class: positions are added to the embeddings, or rotate queries and keys.

    Args:
        max_positions: the number of learned positions.

    Shapes: vectors ``[batch, length, depth]`` and their positions ``[batch or 1, length]``,
    starting at 0, by default 0, 1, 2, ... → vectors of the same shape, with Keras's mask.
    """

    def __init__(self, max_positions: int = 1024, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        if max_positions < 1:
            raise ValueError(f"max_positions must be at least 1, not {max_positions}.")
        self.max_positions = max_positions
        self.supports_masking = True

    def build(self, vectors_shape: tuple[int | None, ...]) -> None:
        """Create the weights, if there are any; the depth must be known."""
        self.built = True

    def call(self, vectors: Tensor, position: Tensor = None) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not implement call.")

    def check(self, depth: int) -> None:
        """Check that these positions support the depth of a head.

        Raises:
            ValueError: they do not.
        """

    def angles(self, position: Tensor, depth: int) -> tuple[Tensor, Tensor] | None:
        """Return cosines and sines for ``rotate``, ``[batch or 1, 1, length, depth / 2]``, or None.

        Args:
            position: ``[batch or 1, length]``.
            depth: the depth of one head.
        """
        return None


@register
class NoPositions(Positions):
    """No positions: the input is a set.

    Lee et al. 2019, "Set Transformer", §3.
    """

    def call(self, vectors: Tensor, position: Tensor = None) -> Tensor:
        return vectors


@register
class SinusoidalPositions(Positions):
    """Add sin(pos / 10000^(2i/d)) to even and the cosine to odd components of a vector.

    Vaswani et al. 2017, "Attention Is All You Need", §3.5.
    """

    def call(self, vectors: Tensor, position: Tensor = None) -> Tensor:
        depth, position = int(vectors.shape[-1]), _or_default(position, vectors)
        phase = phases(position, depth)
        pairs = ops.stack([ops.sin(phase), ops.cos(phase)], axis=-1)
        length = ops.shape(position)[1]
        waves = ops.reshape(pairs, (-1, length, 2 * int(phase.shape[-1])))[:, :, :depth]
        return vectors + ops.cast(waves, vectors.dtype)


@register
class LearnedPositions(Positions):
    """Add a learned vector per position.

    Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", §3.1. Positions beyond the
    last learned one use its vector.
    """

    def build(self, vectors_shape: tuple[int | None, ...]) -> None:
        depth = int(vectors_shape[-1] or 0)
        self.table = self.add_weight(
            name="table",
            shape=(self.max_positions, depth),
            initializer=keras.initializers.RandomNormal(stddev=depth**-0.5),
        )
        super().build(vectors_shape)

    def call(self, vectors: Tensor, position: Tensor = None) -> Tensor:
        index = ops.minimum(_or_default(position, vectors), self.max_positions - 1)
        learned = ops.take(ops.convert_to_tensor(self.table), index, axis=0)
        return vectors + ops.cast(learned, vectors.dtype)


@register
class RotaryPositions(Positions):
    """Rotate queries and keys by an angle proportional to the position.

    Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", §3.2.2: the
    product of a query at m and a key at n depends only on m - n. Rotated pairs are (i, i + d/2)
    instead of (2i, 2i + 1), which only changes the order of the components.
    """

    def check(self, depth: int) -> None:
        if depth % 2:
            raise ValueError(f"Rotary positions need heads with an even depth, not {depth}.")

    def call(self, vectors: Tensor, position: Tensor = None) -> Tensor:
        return vectors

    def angles(self, position: Tensor, depth: int) -> tuple[Tensor, Tensor] | None:
        phase = phases(position, depth)[:, None]
        return (
            ops.cast(ops.cos(phase), self.compute_dtype),
            ops.cast(ops.sin(phase), self.compute_dtype),
        )


def _or_default(position: Tensor, vectors: Tensor) -> Tensor:
    """Return the positions of vectors; by default 0, 1, 2, ..."""
    return ops.arange(ops.shape(vectors)[1])[None] if position is None else position


def phases(position: Tensor, depth: int) -> Tensor:
    """Return pos / 10000^(2i/d) of ``[batch or 1, length]`` as ``[..., length, depth / 2]``."""
    exponents = ops.arange((depth + 1) // 2, dtype="float32") * (2.0 / depth)
    return ops.cast(position, "float32")[..., None] / ops.power(BASE, exponents)


def rotate(vectors: Tensor, angles: tuple[Tensor, Tensor] | None) -> Tensor:
    """Rotate queries or keys ``[batch, heads, length, depth]`` by ``Positions.angles``."""
    if angles is None:
        return vectors
    cos, sin = angles
    first, second = ops.split(vectors, 2, axis=-1)
    return ops.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


POSITIONS: dict[str, type[Positions]] = {
    "learned": LearnedPositions,
    "none": NoPositions,
    "rotary": RotaryPositions,
    "sinusoidal": SinusoidalPositions,
}
