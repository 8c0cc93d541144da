"""Position encodings of Transformers."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from regard.models.serialization import (
    ConfiguredLayer,
    by_name,
    check_name,
    constructor_arguments,
    register,
)
from regard.models.tensors import Tensor

BASE = 10000.0  # wavelengths of sinusoids and rotations are from 2π to BASE · 2π
MERGES = ("add", "concat")


class Positions(ConfiguredLayer):
    """Base class: positions are joined to the embeddings, or rotate queries and keys.

    Args:
        max_positions: the number of learned positions.
        first: the number of the first position, for vectors of positions.
        merge: ``add`` the vectors of the positions to the embeddings, or ``concat`` both and
            project them to the depth of the embeddings.

    Shapes: vectors ``[batch, length, depth]`` and their positions ``[batch or 1, length]``,
    counted from 0, by default 0, 1, 2, ... → vectors of the same shape, with Keras's mask.

    Raises:
        ValueError: ``max_positions`` or ``merge`` is invalid; or, in ``call``, a layer that was
            built for a single vector has no position, which is not 0 in a loop over steps.
    """

    def __init__(
        self, max_positions: int = 1024, merge: str = "add", first: int = 0, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        if max_positions < 1:
            raise ValueError(f"max_positions must be at least 1, not {max_positions}.")
        check_name("merge", MERGES, merge)
        self.max_positions, self.merge, self.first = max_positions, merge, first
        self.supports_masking = True

    def build(self, vectors_shape: tuple[int | None, ...]) -> None:
        """Create the weights, if there are any; the depth must be known."""
        self.has_single_vector = vectors_shape[1] == 1
        if self.merge == "concat":
            depth = int(vectors_shape[-1] or 0)
            self.project = self.create_dense("project", 2 * depth, depth)

    def call(self, vectors: Tensor, position: Tensor = None) -> Tensor:
        is_default = position is None
        if is_default:
            position = ops.arange(ops.shape(vectors)[1])[None]
        added = self.position_vectors(position + self.first, int(vectors.shape[-1]))
        if added is None:
            return vectors
        if is_default and self.has_single_vector and vectors.shape[1] == 1:
            raise ValueError(
                "The position of a single vector is unknown. Pass position=[[t]], where t is 0 in "
                "the first step."
            )
        added = ops.cast(added, vectors.dtype)
        if self.merge == "add":
            return vectors + added
        added = ops.broadcast_to(added, ops.shape(vectors))
        return self.project(ops.concatenate([vectors, added], axis=-1))

    def position_vectors(self, position: Tensor, depth: int) -> Tensor | None:
        """Return the vectors of positions, ``[batch or 1, length, depth]``, or None."""
        return None

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

    Lee et al. 2019, "Set Transformer", §3. Also stands for the positions that are part of the
    attention itself (``regard.models.attention.relative``).
    """


@register
class SinusoidalPositions(Positions):
    """Add sin(pos / 10000^(2i/d)) to the even and the cosine to the odd components of a vector.

    Vaswani et al. 2017, "Attention Is All You Need", §3.5.
    """

    def position_vectors(self, position: Tensor, depth: int) -> Tensor:
        phase = phases(position, depth)
        pairs = ops.stack([ops.sin(phase), ops.cos(phase)], axis=-1)
        length = ops.shape(position)[1]
        return ops.reshape(pairs, (-1, length, 2 * int(phase.shape[-1])))[:, :, :depth]


@register
class MarianPositions(Positions):
    """Add the sinusoids of ``SinusoidalPositions`` in another order: all sines, then all cosines.

    Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++", whose models
    have this order.
    """

    def position_vectors(self, position: Tensor, depth: int) -> Tensor:
        phase = phases(position, depth)
        return ops.concatenate([ops.sin(phase), ops.cos(phase)], axis=-1)[:, :, :depth]


@register
class Tensor2TensorPositions(Positions):
    """Add all sines, then all cosines, of pos / 10000^(i / (d/2 - 1)).

    Vaswani et al. 2018, "Tensor2Tensor for Neural Machine Translation", whose code has these
    wavelengths, as have fairseq (with 2 as the first position) and OpenNMT-tf (with 1). The last
    component of an odd depth is 0.
    """

    def position_vectors(self, position: Tensor, depth: int) -> Tensor:
        half = depth // 2
        exponents = ops.arange(half, dtype="float32") / max(half - 1, 1)
        phase = ops.cast(position, "float32")[..., None] / ops.power(BASE, exponents)
        waves = ops.concatenate([ops.sin(phase), ops.cos(phase)], axis=-1)
        return ops.pad(waves, [[0, 0], [0, 0], [0, depth % 2]])


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

    def position_vectors(self, position: Tensor, depth: int) -> Tensor:
        index = ops.minimum(position, self.max_positions - 1)
        return ops.take(ops.convert_to_tensor(self.table), index, axis=0)


@register
class RotaryPositions(Positions):
    """Rotate queries and keys by an angle proportional to the position.

    Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", §3.2.2: the
    product of a query at m and a key at n depends only on m - n. Rotated pairs are (i, i + d/2)
    instead of (2i, 2i + 1), which only changes the order of the components. d must be even.
    """

    def angles(self, position: Tensor, depth: int) -> tuple[Tensor, Tensor] | None:
        phase = phases(position, depth)[:, None]
        return (
            ops.cast(ops.cos(phase), self.compute_dtype),
            ops.cast(ops.sin(phase), self.compute_dtype),
        )


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
    "alibi": NoPositions,
    "learned": LearnedPositions,
    "none": NoPositions,
    "relative": NoPositions,
    "rotary": RotaryPositions,
    "sinusoidal": SinusoidalPositions,
    "sinusoidal_marian": MarianPositions,
    "sinusoidal_tensor2tensor": Tensor2TensorPositions,
}


def create_positions(settings: Mapping[str, Any], **kwargs: Any) -> Positions:
    """Return the positions of a layer.

    Args:
        settings: ``positions``, a name in ``POSITIONS``, ``max_positions``, ``position_merge`` and
            optionally ``first_position``, the arguments of ``Positions``.
        kwargs: further arguments of the layer.

    Raises:
        ValueError: the name or the merge is unknown, or ``max_positions`` is below 1.
    """
    create = by_name("positions", POSITIONS, settings["positions"])
    first = settings.get("first_position", 0)
    return create(settings["max_positions"], settings["position_merge"], first, **kwargs)
