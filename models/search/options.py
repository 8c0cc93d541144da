"""With what the prefixes of a beam can go on: the few pieces of which the best are chosen."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.search.base import IMPOSSIBLE
from models.search.rules import Rules
from models.vocabulary import EOS, UNK


class Options:
    """Every prefix of a row, with each of the few pieces that can be among the best of the row.

    Of all pieces behind all prefixes the best ``size`` are wanted, and the best ``size`` that do
    not end. They are among the ``size`` pieces that are worth most behind any prefix, unless they
    are special; so what is sorted, and what most rules are asked of, is a fraction of the pieces.
    Where the number of pieces is known only at run time there are few, and all are options.

    An option is a number: that of the prefix times the columns, plus that of the piece.

    Attributes:
        worth: ``[batch, size, columns]``, the log-probabilities of prefix and piece together,
            after all rules; the last column is EOS.
        gains: what the model gives the piece alone, of the same shape, where that is something
            else than what it adds to the worth of the prefix; else None.

    Args:
        rules: those of the search.
        logits: ``[batch * size, pieces]``.
        ids: ``[batch * size, length]``, the prefixes.
        position: how many pieces they have.
        worth: what they are worth, ``[batch, size]``.
    """

    def __init__(self, rules: Rules, logits: Any, ids: Any, position: Any, worth: Any):
        self.size, pieces = worth.shape[1], ops.shape(logits)[-1]
        if rules.by_piece:
            own, after = rules(logits, ids, position)
        else:
            own = after = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        every = ops.reshape(after, (-1, self.size, pieces)) + worth[:, :, None]
        self._pieces = _columns(every, self.size)
        self.columns = ops.shape(self._pieces)[1]
        rows = ops.reshape(ops.arange(ops.shape(logits)[0], dtype="int32"), (-1, self.size, 1))
        at = rows * pieces + self._pieces[:, None]
        self.worth = _at(every, at)
        if not rules.by_piece:
            ends = ops.equal(ops.arange(self.columns), self.columns - 1)
            self.worth = ops.where(rules.late(ends, position), IMPOSSIBLE, self.worth)
        self.gains = _at(own, at) if rules.penalised else None

    def best(self, ending: bool) -> tuple[Any, Any]:
        """The best ``size`` of a row, ``[batch, size]``: what they are worth, and which they are.

        Args:
            ending: whether those that end are among them.
        """
        worth = self.worth if ending else self.worth[:, :, :-1]
        columns = self.columns if ending else self.columns - 1
        worth, at = ops.top_k(ops.reshape(worth, (-1, self.size * columns)), self.size)
        at = ops.cast(at, "int32")
        return worth, at if ending else at // columns * self.columns + at % columns

    def prefixes(self, at: Any) -> Any:
        """The prefixes of options."""
        return at // self.columns

    def end(self, at: Any) -> Any:
        """Which options end."""
        return ops.equal(at % self.columns, self.columns - 1)

    def pieces(self, at: Any) -> Any:
        """The pieces of options."""
        return pick(self._pieces, at % self.columns)


def pick(x: Any, at: Any) -> Any:
    """The entries ``at`` ``[batch, n]`` of ``x`` ``[batch, m, ...]`` as ``[batch, n, ...]``."""
    batch, count, *rest = ops.shape(x)
    rows = ops.arange(batch, dtype="int32")[:, None] * count + ops.cast(at, "int32")
    return ops.take(ops.reshape(x, (-1, *rest)), rows, axis=0)


def _columns(worth: Any, size: int) -> Any:
    """The pieces that are options, ``[batch, columns]``; ``worth`` is of all, for each prefix."""
    pieces, first = worth.shape[-1], EOS + 1  # PAD and BOS are never an answer
    if pieces is not None and pieces - first > size:
        _, usual = ops.top_k(ops.max(worth, axis=1)[:, first:], size)
        usual = ops.cast(usual, "int32") + first
    else:
        usual = ops.arange(first, ops.shape(worth)[-1], dtype="int32")[None]
    special = ops.convert_to_tensor([[UNK, EOS]], dtype="int32")
    batch = ops.shape(worth)[0]
    both = [ops.broadcast_to(x, (batch, ops.shape(x)[1])) for x in (usual, special)]
    return ops.concatenate(both, axis=1)


def _at(values: Any, at: Any) -> Any:
    """The values, counted through, that are at some places."""
    return ops.take(ops.reshape(values, (-1,)), at, axis=0)
