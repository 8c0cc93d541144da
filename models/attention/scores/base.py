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
        choice_name: the name in ``SCORES``.
        coverage: whether ``match`` takes the attention of the previous steps.
        needs_equal_depths: whether queries and keys must have the same depth.
        reads_content: whether the scores depend on the keys, and not only on their positions.

    Raises:
        ValueError: in the constructor, an option is out of its bounds; in ``build``, the depths
        differ but must not; in ``call``, the ranks differ or
            are below 3.
    """

    choice_name: str = ""
    coverage: bool = False
    needs_equal_depths: bool = False
    reads_content: bool = True

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        """Create the weights; both depths (the last dimensions) must be known."""
        if self.needs_equal_depths and query_shape[-1] != keys_shape[-1]:
            raise ValueError(
                f"The score {self.choice_name!r} needs queries and keys of the same depth, but "
                f"they have {query_shape[-1]} and {keys_shape[-1]}. Use the score 'general', or "
                "equal depths."
            )
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
