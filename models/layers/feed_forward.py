"""The feed-forward network of a Transformer block."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from regard.models.layers.dropout import Dropout
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Tensor

ACTIVATIONS = ("relu", "gelu", "swiglu")


@register
class FeedForward(ConfiguredLayer):
    """W2 · activation(W1 x).

    Vaswani et al. 2017, §3.3 (relu); Hendrycks and Gimpel 2016 (gelu, the exact form); Shazeer
    2020, "GLU Variants Improve Transformer", eq. 6 (swiglu: W2 (silu(W x) · V x), without
    biases; the third matrix increases the number of weights by half).

    Args:
        inner: the depth between the two products.
        activation: one of ``ACTIVATIONS``.
        dropout: the dropout rate after the activation.

    Shapes: ``[..., depth]`` → ``[..., depth]``.

    Raises:
        ValueError: the activation is unknown, or ``inner`` is less than 1.
    """

    def __init__(self, inner: int, activation: str = "relu", dropout: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        if activation not in ACTIVATIONS:
            choices = ", ".join(ACTIVATIONS)
            raise ValueError(f"Unknown activation {activation!r}. Choices: {choices}.")
        if inner < 1:
            raise ValueError(f"inner must be at least 1, not {inner}.")
        self.inner, self.activation = inner, activation
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        depth = inputs_shape[-1]
        is_gated = self.activation == "swiglu"
        # The gate and the gated values are computed in one product.
        width = 2 * self.inner if is_gated else self.inner
        self.expand = keras.layers.Dense(
            width, use_bias=not is_gated, dtype=self.dtype_policy, name="expand"
        )
        self.contract = keras.layers.Dense(
            depth, use_bias=not is_gated, dtype=self.dtype_policy, name="contract"
        )
        self.expand.build((None, depth))
        self.contract.build((None, self.inner))
        self.built = True

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        hidden = self.expand(inputs)
        if self.activation == "swiglu":
            gate, hidden = ops.split(hidden, 2, axis=-1)
            hidden = ops.silu(gate) * hidden
        elif self.activation == "gelu":
            hidden = ops.gelu(hidden, approximate=False)
        else:
            hidden = ops.relu(hidden)
        return self.contract(self.dropout(hidden, training=training))
