"""What the recurrent layers of a decoder begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from models.serialization import register


@register
class Bridge(keras.layers.Layer):
    """From a memory to the first states of a stack of recurrent layers.

    tanh(W s + b) for each tensor of a cell's state, where s is the encoder's last state of it
    (Bahdanau et al. 2015, §A.2.2). A memory that has none is summed up by the mean of its values
    (Xu et al. 2015, §3.1.2).

    Args:
        state_names: the tensors of a cell's state.
        units: the size of each.
        layers: the number of layers.
        depth: of the memory's values.
        final_depth: of the encoder's last states; 0 where it gives none.
        zeros: begin with zeros instead, so that all that a decoder knows of its source is what it
            has looked at.

    Shapes: a memory (see ``models.decoders.base``) → for each layer a tuple of ``[batch, units]``.
    """

    def __init__(
        self,
        state_names: Sequence[str],
        units: int,
        layers: int,
        depth: int,
        final_depth: int = 0,
        zeros: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "state_names": tuple(state_names),
            "units": units,
            "layers": layers,
            "depth": depth,
            "final_depth": final_depth,
            "zeros": zeros,
        }
        self.dense = [
            keras.layers.Dense(
                layers * units, activation="tanh", dtype=self.dtype_policy, name=name
            )
            for name in (() if zeros else state_names)
        ]

    def build(self, memory_shape: Any = None) -> None:
        for dense in self.dense:
            dense.build((None, self.settings["final_depth"] or self.settings["depth"]))
        self.built = True

    def call(self, memory: dict[str, Any]) -> list[tuple[Any, ...]]:
        layers, names = self.settings["layers"], self.settings["state_names"]
        if self.settings["zeros"]:
            rows = ops.shape(memory["mask"])[0]
            nothing = ops.zeros((rows, self.settings["units"]), dtype=self.compute_dtype)
            return [tuple(nothing for _ in names) for _ in range(layers)]
        finals = self.summary(memory)
        # An encoder of another cell has more states or fewer: the first is the output.
        finals = [finals[i if i < len(finals) else 0] for i in range(len(names))]
        starts = [
            ops.split(dense(final), layers, axis=-1)
            for dense, final in zip(self.dense, finals, strict=True)
        ]
        return [tuple(parts) for parts in zip(*starts, strict=True)]

    def summary(self, memory: dict[str, Any]) -> list[Any]:
        """What sums up the source: ``[batch, depth]`` for each tensor of the encoder's states."""
        if self.settings["final_depth"]:
            return list(memory["final_states"])
        values = ops.cast(memory["values"], "float32")
        real = ops.cast(memory["mask"], "float32")[..., None]
        mean = ops.sum(values * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)
        return [ops.cast(mean, self.compute_dtype)]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
