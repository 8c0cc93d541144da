"""The pointer to the begin and the end of an answer, and the search for the best span."""

from typing import Any

from keras import ops

from regard.models.attention.alignments.base import MASKED
from regard.models.attention.pointer import Pointer
from regard.models.layers.cells import create_cells
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Tensor


@register
class AnswerPointer(ConfiguredLayer):
    """Point to the begin and then to the end of an answer, after some hops through the memory.

    Wang and Jiang 2016, "Machine Comprehension Using Match-LSTM and Answer Pointer", §2.3, the
    boundary model: β_k = softmax(score(q_k, H)) and q_{k+1} = RNN(Σ β_k H, q_k); β_1 is the
    distribution of the begin, β_2 of the end. q_1 is a projection of the question's vector instead
    of zeros. Hops are steps before these two whose weights are no output (Sukhbaatar et al. 2015,
    "End-To-End Memory Networks", §2.2). Every step has a pointer of its own.

    Args:
        units: the depth of the queries.
        hops: the number of steps before the begin.
        score: the score of the pointers, as in ``Pointer``.

    Shapes: question ``[batch, question_depth]``, memory ``[batch, passage, depth]`` and its mask
    ``[batch, passage]`` → logits ``[batch, hops + 2, passage]`` in float32, very low at padding.

    Raises:
        ValueError: the score is unknown.
    """

    def __init__(
        self,
        units: int = 128,
        hops: int = 0,
        score: str | dict[str, Any] = "additive",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        policy = self.dtype_policy
        (self.cell,) = create_cells("gru", units, 1, dtype=policy)
        names = [*(f"hop_{i}" for i in range(hops)), "begin", "end"]
        self.pointers = [Pointer(score, dtype=policy, name=name) for name in names]

    def build(self, question_shape: tuple[Any, ...], memory_shape: tuple[Any, ...]) -> None:
        units = self.settings["units"]
        self.start = self.create_dense("start", question_shape[-1], units, activation="tanh")
        self.cell.build((None, memory_shape[-1]))
        for pointer in self.pointers:
            pointer.build((None, None, units), memory_shape)

    def call(self, question: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        query = self.start(question)
        steps: list[Tensor] = []
        for i, pointer in enumerate(self.pointers):
            if i:
                weights = ops.cast(ops.softmax(steps[-1], axis=-1), memory.dtype)
                context = ops.matmul(weights, memory)[:, 0]
                (query,) = self.cell.advance(self.cell.project(context), (query,))
            steps.append(pointer.logits(query[:, None], pointer.prepare(memory, mask)))
        return ops.concatenate(steps, axis=1)


def best_spans(
    begin: Tensor, end: Tensor, max_length: int, count: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the most probable spans with begin ≤ end < begin + ``max_length``, the best first.

    Every span is compared, so the result is exact. Of equal ones the first begin is preferred, then
    the first end.

    Args:
        begin: the log-probability of each begin, ``[batch, length]``.
        end: the log-probability of each end, ``[batch, length]``.
        max_length: the maximum number of tokens of a span.
        count: the number of spans.

    Returns:
        The begins, the ends and the log-probabilities, each ``[batch, count]``. Missing spans have
        log-probabilities below those of masked positions, and any begin and end.
    """
    length = ops.shape(begin)[1]
    ends = ops.arange(length)[:, None] + ops.arange(max_length)[None]
    scores = begin[:, :, None] + ops.take(end, ops.minimum(ends, length - 1), axis=1)
    scores = ops.where(ends < length, scores, 4 * MASKED)
    flat = ops.reshape(scores, (ops.shape(begin)[0], length * max_length))
    flat = ops.pad(flat, [[0, 0], [0, count]], constant_values=4 * MASKED)
    scores, best = ops.top_k(flat, count)
    best = ops.cast(best, "int32")
    first = ops.minimum(best // max_length, length - 1)
    return first, ops.minimum(first + best % max_length, length - 1), scores
