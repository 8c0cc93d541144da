"""Attention between two sentences, and between a passage and a question."""

from typing import Any

import keras
from keras import ops

from regard.models.attention.alignments.base import MASKED, masked_softmax
from regard.models.attention.attention import Attention
from regard.models.layers.dropout import Dropout
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Tensor


@register
class CrossAttention(ConfiguredLayer):
    """Combine each position with the positions of the other sentence that it attends to.

    Chen et al. 2017, "Enhanced LSTM for Natural Language Inference", §3.2-3.3: ã is the sum of
    the other sentence weighted by attention, and each position becomes
    relu(W [a; ã; a - ã; a ⊙ ã; e] + b). Both directions use the same weights. In addition to ESIM,
    e is 1 if the other sentence contains the same token, else 0 (Chen et al. 2017, "Reading
    Wikipedia to Answer Open-Domain Questions", §3.2).

    Args:
        units: the depth of the output.
        attention: the arguments of ``Attention``.
        dropout: the dropout rate of the output.

    Shapes: states ``[batch, length, depth]``, other ``[batch, other, depth]``, their masks
    ``[batch, length]`` and ``[batch, other]``, and exact_match ``[batch, length]``, which is e →
    ``[batch, length, units]`` and the weights ``[batch, length, other]``, both zero at padding.
    """

    def __init__(
        self,
        units: int = 128,
        attention: dict[str, Any] | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        attention = dict(attention or {"score": "scaled_dot"})
        self.settings = constructor_arguments(locals())
        policy = self.dtype_policy
        self.attention = Attention(**self.settings["attention"], dtype=policy, name="attention")
        self.compose = keras.layers.Dense(units, activation="relu", dtype=policy, name="compose")
        self.dropout = Dropout(dropout, dtype=policy)

    def build(self, states_shape: tuple[Any, ...]) -> None:
        self.attention.build(states_shape, states_shape)
        self.compose.build((None, None, 4 * states_shape[-1] + 1))

    def call(
        self,
        states: Tensor,
        mask: Tensor,
        other: Tensor,
        other_mask: Tensor,
        exact_match: Tensor,
        training: bool = False,
    ) -> tuple[Tensor, Tensor]:
        attended, weights = self.attention(states, other, mask=other_mask, training=training)
        mask = mask[..., None]
        exact = ops.cast(exact_match, states.dtype)[..., None]
        features = [states, attended, states - attended, states * attended, exact]
        composed = self.compose(ops.concatenate(features, axis=-1))
        composed = self.dropout(composed, training=training)
        return (
            composed * ops.cast(mask, composed.dtype),
            ops.cast(weights, "float32") * ops.cast(mask, "float32"),
        )


@register
class AttentionFlow(ConfiguredLayer):
    """Attend from a passage to a question and back.

    Seo et al. 2017, "Bidirectional Attention Flow for Machine Comprehension", §2.4: the similarity
    S_tj = w · [h_t; u_j; h_t ∘ u_j] of each token of the passage and of the question gives ũ_t, the
    question as passage token t attends to it (softmax over row t), and h̃, the passage as the
    question attends to it (softmax over the largest similarity of each row). The output is
    G = [h; ũ; h ∘ ũ; h ∘ h̃].

    Shapes: passage ``[batch, passage, depth]`` and question ``[batch, question, depth]`` with masks
    ``[batch, passage]`` and ``[batch, question]`` → ``[batch, passage, 4 * depth]``, the attention
    to the question ``[batch, passage, question]`` and the attention to the passage ``[batch,
    passage]``. All are zero at padding.
    """

    def build(self, passage_shape: tuple[Any, ...]) -> None:
        depth = passage_shape[-1]
        self.rows, self.columns = (
            self.create_dense(name, depth, 1, use_bias=False) for name in ("rows", "columns")
        )
        # Products of states with variance 1 start with variance 1.
        initializer = keras.initializers.Constant(depth**-0.5)
        self.product = self.add_weight(name="product", shape=(depth,), initializer=initializer)

    def call(
        self, passage: Tensor, mask: Tensor, question: Tensor, question_mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        weighted = passage * ops.cast(self.product, passage.dtype)
        products = ops.matmul(weighted, ops.transpose(question, (0, 2, 1)))
        columns = ops.transpose(self.columns(question), (0, 2, 1))
        similarity = ops.cast(self.rows(passage) + columns + products, "float32")
        valid = ops.logical_and(mask[:, :, None], question_mask[:, None])
        to_question = masked_softmax(similarity, valid)
        peaks = ops.max(ops.where(valid, similarity, MASKED), axis=-1, initial=MASKED)
        to_passage = masked_softmax(peaks, mask)
        attended = ops.matmul(ops.cast(to_question, question.dtype), question)
        summary = ops.matmul(ops.cast(to_passage[:, None], passage.dtype), passage)
        features = [passage, attended, passage * attended, passage * summary]
        flow = ops.concatenate(features, axis=-1) * ops.cast(mask[..., None], passage.dtype)
        return flow, to_question, to_passage
