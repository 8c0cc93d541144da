"""A score that knows the query and the positions, and never looks at the keys."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.attention.scores.base import Score, Shape, rows_at
from models.serialization import register


@register
class LocationScore(Score):
    """W q: one number for each source position, whatever stands there.

    Luong et al. 2015, §3.1, eq. 8, "location". There are as many rows in W as positions that can
    be looked at; what stands behind them scores minus infinity, is taken out of the mask, and so
    weighs 0. Every position must be there at once: no cache of keys can grow step by step.

    Args:
        max_source: how many source positions can be looked at.

    Raises:
        ValueError: ``max_source`` is below 1.
    """

    def __init__(self, max_source: int = 512, **kwargs: Any):
        super().__init__(**kwargs)
        if max_source < 1:
            raise ValueError(f"The score 'location' needs a max_source from 1, not {max_source}.")
        self.max_source = max_source

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(query_shape[-1], self.max_source),
            initializer="glorot_uniform",
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Any) -> Any:
        """A column of W a position, in the keys' place: ``[1, ..., source, query_depth]``."""
        steps = ops.arange(ops.shape(keys)[-2])
        columns = ops.take(self._cast(self.kernel), ops.minimum(steps, self.max_source - 1), axis=1)
        lead = (1,) * (len(keys.shape) - 2)
        return ops.reshape(ops.transpose(columns), (*lead, -1, self.kernel.shape[0]))

    def match(self, query: Any, prepared: Any) -> Any:
        scores = super().match(query, prepared)
        return self._without(scores, ops.arange(ops.shape(scores)[-1]))

    def match_at(self, query: Any, prepared: Any, places: Any) -> Any:
        columns = rows_at(prepared, places)
        scores = super().match(query[..., None, :], columns)[..., 0, :]
        return self._without(scores, places)

    def reach(self, mask: Any) -> Any:
        return ops.logical_and(mask, ops.arange(ops.shape(mask)[-1]) < self.max_source)

    def _without(self, scores: Any, places: Any) -> Any:
        """The scores, minus infinity where there are no weights for a place."""
        behind = ops.cast(float("-inf"), scores.dtype)
        return ops.where(places < self.max_source, scores, behind)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "max_source": self.max_source}
