"""A score of the query and the source position that ignores the keys."""

from typing import Any

from keras import ops

from regard.core.bounds import Positive
from regard.models.attention.scores.base import Score, Shape, gather_positions
from regard.models.serialization import checked_arguments, choice
from regard.models.tensors import Tensor


@choice("location")
class LocationScore(Score):
    """Wq, which depends on source positions and not on their content (Luong 2015).

    Luong et al. 2015, §3.1, eq. 8, "location": one number per source position. W has one row per
    position; later positions score minus infinity and are masked. All positions must be known at
    once, so keys cannot be cached step by step.

    Args:
        max_source: Maximum number of source positions.
    """

    reads_content = False

    def __init__(self, max_source: Positive = 512, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.max_source = max_source

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        self.kernel = self.add_weight(
            name="kernel", shape=(query_shape[-1], self.max_source), initializer="glorot_uniform"
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Tensor) -> Tensor:
        """Return one column of W per position, ``[1, ..., source, query_depth]``."""
        steps = ops.arange(ops.shape(keys)[-2])
        columns = ops.take(self._cast(self.kernel), ops.minimum(steps, self.max_source - 1), axis=1)
        lead = (1,) * (len(keys.shape) - 2)
        return ops.reshape(ops.transpose(columns), (*lead, -1, self.kernel.shape[0]))

    def match(self, query: Tensor, prepared: Tensor) -> Tensor:
        scores = super().match(query, prepared)
        return self._exclude_late(scores, ops.arange(ops.shape(scores)[-1]))

    def match_at(self, query: Tensor, prepared: Tensor, positions: Tensor) -> Tensor:
        columns = gather_positions(prepared, positions)
        scores = super().match(query[..., None, :], columns)[..., 0, :]
        return self._exclude_late(scores, positions)

    def valid_mask(self, mask: Tensor) -> Tensor:
        return ops.logical_and(mask, ops.arange(ops.shape(mask)[-1]) < self.max_source)

    def _exclude_late(self, scores: Tensor, positions: Tensor) -> Tensor:
        """Return the scores, with minus infinity at positions from ``max_source`` on."""
        excluded = ops.cast(float("-inf"), scores.dtype)
        return ops.where(positions < self.max_source, scores, excluded)
