"""The initial states of a recurrent decoder."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Memory, Tensor


@register
class Bridge(ConfiguredLayer):
    """Compute the initial states of a stack of recurrent layers from a memory.

    tanh(W s + b) for each tensor of a cell's state, where s is the encoder's final state of that
    tensor (Bahdanau et al. 2015, §A.2.2). Without final states s is the mean of the memory's
    values (Xu et al. 2015, §3.1.2).

    Args:
        state_names: the names of the tensors of a cell's state.
        units: the size of each tensor.
        layers: the number of layers.
        depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 if there are none.
        zeros: return zeros instead, so that attention is the decoder's only source of information.

    Shapes: a memory (``regard.models.decoders.base``) → for each layer a tuple ``[batch, units]``.
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
        state_names = tuple(state_names)
        self.settings = constructor_arguments(locals())
        self.dense = [
            keras.layers.Dense(
                layers * units, activation="tanh", dtype=self.dtype_policy, name=name
            )
            for name in (() if zeros else state_names)
        ]

    def build(self, memory_shape: Any = None) -> None:
        for dense in self.dense:
            dense.build((None, self.settings["final_depth"] or self.settings["depth"]))

    def call(self, memory: Memory) -> list[tuple[Tensor, ...]]:
        layers, names = self.settings["layers"], self.settings["state_names"]
        if self.settings["zeros"]:
            rows = ops.shape(memory["mask"])[0]
            zeros = ops.zeros((rows, self.settings["units"]), dtype=self.compute_dtype)
            return [(zeros,) * len(names)] * layers
        finals = self.summary(memory)
        # A cell of another type has more or fewer state tensors; the first one is the output.
        finals = [finals[i if i < len(finals) else 0] for i in range(len(names))]
        starts = [
            ops.split(dense(final), layers, axis=-1)
            for dense, final in zip(self.dense, finals, strict=True)
        ]
        return [tuple(states) for states in zip(*starts, strict=True)]

    def summary(self, memory: Memory) -> list[Tensor]:
        """Return a summary of the source, ``[batch, depth]`` per tensor of the encoder's state."""
        if self.settings["final_depth"]:
            return list(memory["final_states"])
        values = ops.cast(memory["values"], "float32")
        mask = ops.cast(memory["mask"], "float32")[..., None]
        mean = ops.sum(values * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)
        return [ops.cast(mean, self.compute_dtype)]
