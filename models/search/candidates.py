"""The candidate continuations of a beam."""

import keras
from keras import ops

from regard.models.search.base import MIN_SCORE
from regard.models.search.logits_processor import LogitsProcessor
from regard.models.tensors import Tensor
from regard.models.vocabulary import EOS, UNK


class Candidates:
    """Every prefix of a row with each of the few tokens that can be among the row's best.

    A beam search needs the best ``size`` continuations of all prefixes, and the best ``size`` that
    do not end. Both are among the ``size`` tokens with the highest score after any prefix, except
    for special tokens; so sorting, and most constraints, see only a fraction of the vocabulary.

    A candidate is identified by ``prefix * columns + column``.

    Attributes:
        scores: ``[batch, size, columns]``, the scores of prefix and token together under all
            constraints; the last column is EOS.

    Args:
        processor: the logits processor of the search.
        logits: ``[batch * size, vocabulary]``.
        ids: ``[batch * size, length]``, the prefixes.
        position: the number of tokens of the prefixes.
        prefix_scores: ``[batch, size]``.
        used: the state of the processor's required tokens, if there are any.
    """

    def __init__(
        self,
        processor: LogitsProcessor,
        logits: Tensor,
        ids: Tensor,
        position: Tensor,
        prefix_scores: Tensor,
        used: Tensor = None,
    ):
        self.size, vocabulary = prefix_scores.shape[1], ops.shape(logits)[-1]
        if processor.needs_vocabulary:
            scores = processor(logits, ids, position, used)
        else:
            scores = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        self._never = processor.never
        totals = ops.reshape(scores, (-1, self.size, vocabulary)) + prefix_scores[:, :, None]
        self._tokens = self._select_tokens(totals)
        self.columns = ops.shape(self._tokens)[1]
        beams = ops.reshape(ops.arange(ops.shape(logits)[0], dtype="int32"), (-1, self.size, 1))
        indices = _flat_indices(beams, vocabulary, self._tokens[:, None])
        self.scores = ops.take(ops.reshape(totals, (-1,)), indices, axis=0)
        if not processor.needs_vocabulary:
            is_eos = ops.equal(ops.arange(self.columns), self.columns - 1)
            forbidden = processor.length_mask(is_eos, position)
            self.scores = ops.where(forbidden, MIN_SCORE, self.scores)

    def _select_tokens(self, totals: Tensor) -> Tensor:
        """Return the tokens ``[batch, columns]`` that may follow a prefix; EOS is the last one.

        Args:
            totals: ``[batch, size, vocabulary]``.
        """
        first = EOS + 1  # PAD and BOS are never chosen
        count = ops.shape(totals)[-1] - first
        count = (min if totals.shape[-1] is not None else ops.minimum)(self.size, count)
        best = ops.max(totals, axis=1)
        # Cheaper than for every prefix; other tokens than these fill the candidates.
        if self._never is not None:
            best = ops.where(self._never, MIN_SCORE, best)
        _, regular = ops.top_k(best[:, first:], count)
        regular = ops.cast(regular, "int32") + first
        special = ops.convert_to_tensor([[UNK, EOS]], dtype="int32")
        batch = ops.shape(totals)[0]
        both = [ops.broadcast_to(x, (batch, ops.shape(x)[1])) for x in (regular, special)]
        return ops.concatenate(both, axis=1)

    def best(self, with_eos: bool) -> tuple[Tensor, Tensor]:
        """Return the scores and candidates of the best ``size`` of a row, ``[batch, size]``.

        Args:
            with_eos: whether candidates that end the hypothesis are included.
        """
        scores = self.scores if with_eos else self.scores[:, :, :-1]
        columns = self.columns if with_eos else self.columns - 1
        scores, indices = ops.top_k(ops.reshape(scores, (-1, self.size * columns)), self.size)
        indices = ops.cast(indices, "int32")
        if not with_eos:
            indices = indices // columns * self.columns + indices % columns
        return scores, indices

    def prefixes(self, candidates: Tensor) -> Tensor:
        """Return the prefixes of candidates."""
        return candidates // self.columns

    def are_eos(self, candidates: Tensor) -> Tensor:
        """Return which candidates end the hypothesis."""
        return ops.equal(candidates % self.columns, self.columns - 1)

    def tokens(self, candidates: Tensor) -> Tensor:
        """Return the tokens of candidates."""
        return gather(self._tokens, candidates % self.columns)


def gather(x: Tensor, indices: Tensor) -> Tensor:
    """Select ``indices`` ``[batch, n]`` of ``x`` ``[batch, m, ...]``, as ``[batch, n, ...]``."""
    batch, count, *rest = ops.shape(x)
    rows = ops.arange(batch, dtype="int32")[:, None] * count + ops.cast(indices, "int32")
    return ops.take(ops.reshape(x, (-1, *rest)), rows, axis=0)


def _flat_indices(beams: Tensor, vocabulary: Tensor, tokens: Tensor) -> Tensor:
    """Return the indices of beams and tokens in flat ``[beams, vocabulary]``.

    There may be more than 2³¹ candidates, but JAX has no 64-bit integers by default.
    """
    dtype = "int32" if keras.backend.backend() == "jax" else "int64"
    beams, vocabulary, tokens = (ops.cast(x, dtype) for x in (beams, vocabulary, tokens))
    return beams * vocabulary + tokens
