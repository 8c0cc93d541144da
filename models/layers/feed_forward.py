"""The feed-forward network of a block of a Transformer."""

from typing import Any

from keras import ops

from regard.models.layers.dropout import Dropout
from regard.models.serialization import ConfiguredLayer, check_name, constructor_arguments, register
from regard.models.tensors import Tensor

ACTIVATIONS = ("relu", "gelu", "silu", "swiglu")


@register
class FeedForward(ConfiguredLayer):
    """W2 · activation(W1 x).

    Vaswani et al. 2017, §3.3 (relu); Hendrycks and Gimpel 2016 (gelu, the exact form, and silu,
    x · sigmoid(x), which Ramachandran et al. 2017 call swish); Shazeer 2020, "GLU Variants
    Improve Transformer", eq. 6 (swiglu: W2 (silu(W x) · V x), without biases; the third matrix
    increases the number of weights by half).

    Args:
        inner: the depth between the two products.
        activation: one of ``ACTIVATIONS``.
        dropout: the dropout rate after the activation.

    Shapes: ``[..., depth]`` → ``[..., depth]``.

    Raises:
        ValueError: the activation is unknown.
    """

    def __init__(self, inner: int, activation: str = "relu", dropout: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        check_name("activation", ACTIVATIONS, activation)
        self.inner, self.activation = inner, activation
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        depth = int(inputs_shape[-1] or 0)
        is_gated = self.activation == "swiglu"
        # The gate and the gated values are computed in one product.
        width = 2 * self.inner if is_gated else self.inner
        self.expand = self.create_dense("expand", depth, width, use_bias=not is_gated)
        self.contract = self.create_dense("contract", self.inner, depth, use_bias=not is_gated)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        hidden = self.expand(inputs)
        if self.activation == "swiglu":
            gate, hidden = ops.split(hidden, 2, axis=-1)
            hidden = ops.silu(gate) * hidden
        elif self.activation == "gelu":
            hidden = ops.gelu(hidden, approximate=False)
        elif self.activation == "silu":
            hidden = ops.silu(hidden)
        else:
            hidden = ops.relu(hidden)
        return self.contract(self.dropout(hidden, training=training))
