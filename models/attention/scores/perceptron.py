"""Scores by a perceptron with one or more hidden layers."""

from typing import Any

from keras import ops

from regard.core.bounds import LayerCount, Size
from regard.models.attention.scores.base import Score, Shape
from regard.models.serialization import checked_arguments, choice
from regard.models.tensors import Tensor


class PerceptronScore(Score):
    """Base class: v · tanh(f(q) + g(k)); the depths may differ.

    The hidden layer is ``[..., target, source, units]``, the largest tensor of any score. g(k) is
    computed once per sentence. Each further hidden layer is h ← tanh(W h + b) (Pavlopoulos et al.
    2017, "Deeper Attention to Abusive User Content Moderation").

    With ``coverage`` the score is v · tanh(f(q) + g(k) + w c), where c is the attention that the
    key has received in all previous steps (See et al. 2017, "Get To The Point: Summarization with
    Pointer-Generator Networks", §2.3, eq. 11). Only a recurrent decoder knows it.

    Args:
        units: Width of the hidden layers; null: that of the query.
        layers: Number of hidden layers (Pavlopoulos 2017).
        coverage: Add the attention of all previous steps to the hidden layer (See 2017, eq. 11).
    """

    def __init__(
        self,
        units: Size | None = None,
        layers: LayerCount = 1,
        coverage: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.units, self.coverage = units, coverage

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        width = int(self.units or query_shape[-1] or 0)
        self._build_hidden(query_shape[-1], keys_shape[-1], width)
        self.deeper = [
            self.create_dense(f"hidden_{i}", width, width, activation="tanh")
            for i in range(2, self.settings["layers"] + 1)
        ]
        self.vector = self.add_weight(name="vector", shape=(width, 1), initializer="glorot_uniform")
        if self.coverage:
            self.coverage_kernel = self.add_weight(
                name="coverage_kernel", shape=(1, width), initializer="glorot_uniform"
            )
        super().build(query_shape, keys_shape)

    def match(self, query: Tensor, prepared: Tensor, coverage: Tensor = None) -> Tensor:
        """Return the scores; ``coverage`` ``[..., target, source]`` is the previous attention.

        Raises:
            ValueError: the score depends on the coverage, and there is none.
        """
        hidden = self._project_query(query)[..., :, None, :] + prepared[..., None, :, :]
        if self.coverage and coverage is None:
            raise ValueError("A score with coverage needs a recurrent decoder.")
        if self.coverage:
            covered = ops.cast(coverage, self.compute_dtype)[..., None]
            hidden = hidden + covered * self._cast(self.coverage_kernel)
        hidden = ops.tanh(hidden)
        for layer in self.deeper:
            hidden = layer(hidden)
        return ops.matmul(hidden, self._cast(self.vector))[..., 0]

    def _build_hidden(self, query_depth: Any, key_depth: Any, width: Any) -> None:
        """Create the weights of the hidden layer."""
        raise TypeError(f"{type(self).__name__} does not implement _build_hidden.")

    def _project_query(self, query: Tensor) -> Tensor:
        """Return f(q), ``[..., target, units]``."""
        raise TypeError(f"{type(self).__name__} does not implement _project_query.")


@choice("additive")
class AdditiveScore(PerceptronScore):
    """v·tanh(Wq + Uk) (Bahdanau 2015).

    Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and Translate",
    §A.1.2, with the bias b that the paper omits: v · tanh(W q + U k + b). Arguments and shapes as
    in ``PerceptronScore``.
    """

    def _build_hidden(self, query_depth: Any, key_depth: Any, width: Any) -> None:
        self.query_kernel = self.add_weight(
            name="query_kernel", shape=(query_depth, width), initializer="glorot_uniform"
        )
        self.key_kernel = self.add_weight(
            name="key_kernel", shape=(key_depth, width), initializer="glorot_uniform"
        )
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")

    def prepare(self, keys: Tensor) -> Tensor:
        # The bias is added here, once per sentence.
        return ops.matmul(keys, self._cast(self.key_kernel)) + self._cast(self.bias)

    def _project_query(self, query: Tensor) -> Tensor:
        return ops.matmul(query, self._cast(self.query_kernel))


@choice("concat")
class ConcatScore(PerceptronScore):
    """v·tanh(W[q; k]) (Luong 2015).

    Luong et al. 2015, §3.1, "concat". W [q; k] is the sum of two products with the upper and the
    lower part of W, so the vectors are never concatenated. Arguments and shapes as in
    ``PerceptronScore``.
    """

    def _build_hidden(self, query_depth: Any, key_depth: Any, width: Any) -> None:
        self.query_depth = query_depth
        self.kernel = self.add_weight(
            name="kernel", shape=(query_depth + key_depth, width), initializer="glorot_uniform"
        )

    def prepare(self, keys: Tensor) -> Tensor:
        return ops.matmul(keys, self._cast(self.kernel)[self.query_depth :])

    def _project_query(self, query: Tensor) -> Tensor:
        return ops.matmul(query, self._cast(self.kernel)[: self.query_depth])
