"""The interface of scores: one method per sentence and one per decoder step."""

from keras import ops

from regard.models.serialization import ConfiguredLayer
from regard.models.tensors import Tensor

Shape = tuple[int | None, ...]


class Score(ConfiguredLayer):
    """Base class of the scores: ``score(query, keys)``, or ``prepare`` once and ``match`` often.

    A decoder calls ``prepare`` once per sentence, so everything that depends only on the keys
    belongs there.

    Shapes: query ``[..., target, query_depth]``, keys ``[..., source, key_depth]``, scores
    ``[..., target, source]``; the dots stand for ``batch`` or ``batch, heads``.

    Attributes:
        coverage: whether ``match`` takes the attention of the previous steps.

    Raises:
        ValueError: in ``call``, the ranks differ or are below 3.
    """

    coverage: bool = False

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        """Create the weights; both depths (the last dimensions) must be known."""
        self.built = True

    def prepare(self, keys: Tensor) -> Tensor:
        """Return everything that ``match`` needs of the keys, ``[..., source, depth]``."""
        return keys

    def match(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Return the scores ``[..., target, source]`` of a query and prepared keys."""
        return ops.matmul(query, ops.swapaxes(prepared, -1, -2))

    def match_at(self, query: Tensor, prepared: Tensor, positions: Tensor) -> Tensor:
        """Return the scores of each query and some of the keys.

        Args:
            query: ``[batch, target, query_depth]``.
            prepared: the result of ``prepare``.
            positions: the indices of the keys, ``[batch, target, positions]``.

        Returns:
            ``[batch, target, positions]``.
        """
        return self.match(query[..., None, :], gather_positions(prepared, positions))[..., 0, :]

    def valid_mask(self, mask: Tensor) -> Tensor:
        """Return a mask ``[..., source]`` without the positions that this score cannot reach."""
        return mask

    def call(self, query: Tensor, keys: Tensor) -> Tensor:
        shapes = tuple(query.shape), tuple(keys.shape)
        if not len(shapes[0]) == len(shapes[1]) > 2:
            raise ValueError(f"Queries and keys must be [..., length, depth], but are {shapes}.")
        return self.match(query, self.prepare(keys))

    def _cast(self, weight: Tensor) -> Tensor:
        """Cast a weight to the compute dtype where no ``__call__`` does it."""
        return ops.cast(weight, self.compute_dtype)


def gather_positions(rows: Tensor, positions: Tensor) -> Tensor:
    """Select positions ``[batch, ...]`` of rows ``[batch or 1, source, ...]``."""
    batch, source, *rest = ops.shape(rows)
    if rows.shape[0] != 1:  # one row for the whole batch needs no offset
        first = ops.arange(batch, dtype="int32") * source
        positions = positions + ops.reshape(first, (-1, *[1] * (len(positions.shape) - 1)))
    return ops.take(ops.reshape(rows, (-1, *rest)), positions, axis=0)


def check_equal_depths(name: str, query_shape: Shape, keys_shape: Shape) -> None:
    """Check that queries and keys have the same depth.

    Raises:
        ValueError: the depths differ.
    """
    if query_shape[-1] != keys_shape[-1]:
        raise ValueError(
            f"The score {name!r} needs queries and keys of the same depth, but they have "
            f"{query_shape[-1]} and {keys_shape[-1]}. Use the score 'general', or equal depths."
        )
