"""Positions: what tells a Transformer in which order its inputs stand."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.serialization import register

BASE = 10000.0  # the wavelengths of sinusoids and rotations go from 2π to BASE · 2π


class Positions(keras.layers.Layer):
    """Base of the positions: added to the embeddings, or turned into queries and keys.

    Args:
        max_positions: how many positions there are weights for, where there are weights.

    Shapes: vectors ``[batch, length, depth]`` and their positions ``[batch or 1, length]``,
    counted from 0, give vectors of the same shape.
    """

    def __init__(self, max_positions: int = 1024, **kwargs: Any):
        super().__init__(**kwargs)
        if max_positions < 1:
            raise ValueError(f"max_positions must be at least 1, not {max_positions}.")
        self.max_positions = max_positions

    def build(self, vectors_shape: tuple[int | None, ...]) -> None:
        """Makes the weights, for those that have any; the depth must be known."""
        self.built = True

    def call(self, vectors: Any, position: Any) -> Any:
        raise TypeError(f"{type(self).__name__} does not say where a vector stands.")

    def check(self, depth: int) -> None:
        """Refuses heads of a depth that these positions cannot work with."""

    def angles(self, position: Any, depth: int) -> tuple[Any, Any] | None:
        """Cosines and sines for ``rotate``, each ``[batch or 1, 1, length, depth / 2]``, or None.

        Args:
            position: ``[batch or 1, length]``.
            depth: that of the queries and keys of one head.
        """
        return None

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "max_positions": self.max_positions}


@register
class NoPositions(Positions):
    """Tells nothing: what is read is a set, and any order of it gives the same.

    Lee et al. 2019, "Set Transformer", §3.
    """

    def call(self, vectors: Any, position: Any) -> Any:
        return vectors


@register
class SinusoidalPositions(Positions):
    """Adds sin(pos / 10000^(2i/d)) to the even numbers of a vector, the cosine to the odd ones.

    Vaswani et al. 2017, "Attention Is All You Need", §3.5.
    """

    def call(self, vectors: Any, position: Any) -> Any:
        depth = int(vectors.shape[-1])
        phase = phases(position, depth)
        pairs = ops.stack([ops.sin(phase), ops.cos(phase)], axis=-1)
        length = ops.shape(position)[1]
        waves = ops.reshape(pairs, (-1, length, 2 * int(phase.shape[-1])))[:, :, :depth]
        return vectors + ops.cast(waves, vectors.dtype)


@register
class LearnedPositions(Positions):
    """Adds a learned vector a position.

    Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", §3.1. All positions from
    the last one on share its vector, so that a longer text is no error.
    """

    def build(self, vectors_shape: tuple[int | None, ...]) -> None:
        depth = int(vectors_shape[-1] or 0)
        self.table = self.add_weight(
            name="table",
            shape=(self.max_positions, depth),
            initializer=keras.initializers.RandomNormal(stddev=depth**-0.5),
        )
        super().build(vectors_shape)

    def call(self, vectors: Any, position: Any) -> Any:
        known = ops.minimum(position, self.max_positions - 1)
        learned = ops.take(ops.convert_to_tensor(self.table), known, axis=0)
        return vectors + ops.cast(learned, vectors.dtype)


@register
class RotaryPositions(Positions):
    """Turns queries and keys by an angle that grows with the position.

    Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", §3.2.2: the
    product of a query at m and a key at n depends on m - n alone. A pair that is turned is
    (i, i + d/2) and not (2i, 2i + 1), which is the same but for the order of the numbers.
    """

    def check(self, depth: int) -> None:
        if depth % 2:
            raise ValueError(
                f"Rotary positions turn pairs of numbers: a head's depth must be even, not {depth}."
            )

    def call(self, vectors: Any, position: Any) -> Any:
        return vectors

    def angles(self, position: Any, depth: int) -> tuple[Any, Any] | None:
        phase = phases(position, depth)[:, None]
        return (
            ops.cast(ops.cos(phase), self.compute_dtype),
            ops.cast(ops.sin(phase), self.compute_dtype),
        )


def phases(position: Any, depth: int) -> Any:
    """pos / 10000^(2i/d) in float32: ``[batch or 1, length]`` → ``[..., length, depth / 2]``."""
    exponents = ops.arange((depth + 1) // 2, dtype="float32") * (2.0 / depth)
    return ops.cast(position, "float32")[..., None] / ops.power(BASE, exponents)


def rotate(vectors: Any, angles: tuple[Any, Any] | None) -> Any:
    """Queries or keys ``[batch, heads, length, depth]`` turned by what ``angles`` gave."""
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
