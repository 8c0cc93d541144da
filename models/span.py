"""Reading comprehension: the span of a passage that answers a question."""

from typing import Any

import keras
from keras import ops

from regard.models.layers.answer_pointer import AnswerPointer
from regard.models.layers.dropout import Dropout
from regard.models.layers.matching import AttentionFlow
from regard.models.layers.pooling import SelfAttentionPooling
from regard.models.serialization import constructor_arguments, register
from regard.models.tensors import Tensor
from regard.models.trainable_model import TrainableModel


@register
class SpanReader(TrainableModel):
    """Point to the answer of a question in a passage.

    One encoder reads both, attention flows both ways (Seo et al. 2017, §2.4), a second encoder
    models the passage with what it knows of the question (§2.5), and an Answer Pointer chooses the
    begin and the end (Wang and Jiang 2016, §2.3), starting from the question's self-attentive
    vector (Lin et al. 2017).

    Args:
        encoder: a layer from ids ``[batch, length]`` to a memory with ``values`` and ``mask``.
        modelling: a layer from vectors ``[batch, passage, 4 * encoder.depth + 1]``, whose last
            feature marks tokens, to a memory.
        units: the depth of the pointer's queries.
        hops: the steps of the pointer before the begin.
        score: the score of the pointer, as in ``Pointer``.
        dropout: the dropout rate of the pointer's memory and of the question's vector.

    ``call`` takes a dictionary of ``passage`` and ``question``, padded ids ``[batch, length]``, and
    returns a dictionary of ``logits`` ``[batch, hops + 2, passage]`` and ``to_question`` ``[batch,
    passage, question]``, the attention of the passage; ``batch_loss`` also reads ``answer``
    ``[batch, 2]``, the first and the last token of the answer.
    """

    parts = ("encoder", "modelling")
    unit = "rows"

    def __init__(
        self,
        encoder: keras.layers.Layer,
        modelling: keras.layers.Layer,
        units: int = 128,
        hops: int = 0,
        score: str | dict[str, Any] = "additive",
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals(), exclude=self.parts)
        policy = self.dtype_policy
        self.encoder, self.modelling = encoder, modelling
        self.flow = AttentionFlow(dtype=policy, name="flow")
        self.pooling = SelfAttentionPooling(units, hops=1, dtype=policy, name="pooling")
        self.pointer = AnswerPointer(units, hops, score, dtype=policy, name="pointer")
        self.dropout = Dropout(dropout, dtype=policy)

    def build(self, inputs_shape: Any = None) -> None:
        depth = self.encoder.depth
        for part in (self.encoder, self.modelling):
            if not part.built:
                part.build()
        self.flow.build((None, None, depth))
        self.pooling.build((None, None, depth))
        self.pointer.build((None, depth), (None, None, self.modelling.depth))

    def call(self, inputs: dict[str, Tensor], training: bool = False) -> dict[str, Tensor]:
        passage = self.encoder(inputs["passage"], training=training)
        question = self.encoder(inputs["question"], training=training)
        mask, values = passage["mask"], question["values"]
        flow, to_question, _ = self.flow(passage["values"], mask, values, question["mask"])
        marked = ops.concatenate([flow, ops.cast(mask[..., None], flow.dtype)], axis=-1)
        memory = self.modelling(marked, training=training)["values"]
        memory = self.dropout(memory, training=training)
        vector = self.dropout(self.pooling(values, question["mask"])[0], training=training)
        return {"logits": self.pointer(vector, memory, mask), "to_question": to_question}

    def batch_loss(self, inputs: Any, outputs: Any, training: bool) -> Any:
        """Return the mean negative log-probability of the answers; empty rows are padding."""
        log_probs = ops.log_softmax(outputs["logits"][:, -2:], axis=-1)
        answers = ops.cast(inputs["answer"], "int32")[..., None]
        chosen = ops.take_along_axis(log_probs, answers, axis=-1)
        return self.mean_over_rows(-ops.sum(chosen, axis=(1, 2)), inputs["passage"])
