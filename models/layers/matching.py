"""Two sentences that look at each other before each becomes a vector."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.attention.attention import Attention
from models.layers.dropouts import Dropout
from models.serialization import register


@register
class CrossAttention(keras.layers.Layer):
    """Puts beside each position what the other sentence has for it.

    Chen et al. 2017, "Enhanced LSTM for Natural Language Inference", §3.2-3.3: ã is the sum of
    the other sentence weighted by attention, and each position becomes
    relu(W [a; ã; a - ã; a ⊙ ã; e] + b). The same weights serve both directions. What ESIM has not
    is e: 1 where the very same piece stands in the other sentence, else 0 (Chen et al. 2017,
    "Reading Wikipedia to Answer Open-Domain Questions", §3.2).

    Args:
        units: the depth of what comes out.
        attention: the arguments of ``Attention``.
        dropout: the share dropped of what comes out, in training.

    Shapes: states ``[batch, length, depth]`` and other ``[batch, other, depth]`` with their masks
    ``[batch, length]`` and ``[batch, other]``, and same ``[batch, length]``, which is e → ``[batch,
    length, units]``, zero at padding, and the weights ``[batch, length, other]``, whose rows are
    zero at padding too.
    """

    def __init__(
        self,
        units: int = 128,
        attention: dict[str, Any] | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "units": units,
            "attention": dict(attention or {"score": "scaled_dot"}),
            "dropout": dropout,
        }
        policy = self.dtype_policy
        self.attention = Attention(**self.settings["attention"], dtype=policy, name="attention")
        self.compose = keras.layers.Dense(units, activation="relu", dtype=policy, name="compose")
        self.dropout = Dropout(dropout, dtype=policy)

    def build(self, states_shape: tuple[Any, ...]) -> None:
        self.attention.build(states_shape, states_shape)
        self.compose.build((None, None, 4 * states_shape[-1] + 1))
        self.built = True

    def call(
        self,
        states: Any,
        mask: Any,
        other: Any,
        other_mask: Any,
        same: Any,
        training: bool = False,
    ) -> tuple[Any, Any]:
        found, weights = self.attention(states, other, mask=other_mask, training=training)
        real = mask[..., None]
        exact = ops.cast(same, states.dtype)[..., None]
        both = ops.concatenate([states, found, states - found, states * found, exact], axis=-1)
        composed = self.dropout(self.compose(both), training=training)
        return (
            composed * ops.cast(real, composed.dtype),
            ops.cast(weights, "float32") * ops.cast(real, "float32"),
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
