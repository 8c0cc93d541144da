"""Constraints on the next token, the same for every search."""

from keras import ops

from regard.models.search.base import MIN_SCORE, Constraints
from regard.models.search.required_tokens import required_tokens
from regard.models.tensors import Tensor
from regard.models.vocabulary import BOS, EOS, PAD


class LogitsProcessor:
    """Turn logits into log-probabilities under the constraints of each row.

    PAD and BOS are never chosen. Where constraints contradict each other, the limit comes before
    the prefix and the prefix before all others. A hypothesis that has no allowed continuation may
    end before its minimum length.

    Args:
        constraints: ``limits`` ``[batch]``, the maximum lengths including EOS; ``minimums``
            ``[batch]``, the minimum lengths including EOS; ``prefix`` ``[batch, prefix]``, the
            first tokens of the hypotheses, padded with PAD; ``slots`` ``[1, vocabulary]``, whose
            tokens of slots that no row requires never follow. The last three are optional.
        hypotheses: the number of hypotheses per row; below, ``beams`` is ``batch * hypotheses``.
        no_repeat_ngram_size: the length of n-grams that must not repeat (Paulus et al. 2018, "A
            Deep Reinforced Model for Abstractive Summarization", §2.5); 0 disables it.

    Attributes:
        required: the tokens that the rows require, None without any.
        never: ``[vocabulary]``, the tokens that no row may have; None without any.
    """

    def __init__(
        self, constraints: Constraints, hypotheses: int = 1, no_repeat_ngram_size: int = 0
    ):
        def per_beam(x: Tensor) -> Tensor:
            return x if hypotheses == 1 else ops.repeat(x, hypotheses, axis=0)

        self.hypotheses, self.limits = hypotheses, per_beam(constraints["limits"])
        self.minimums = self.prefix = None
        if "minimums" in constraints:
            self.minimums = ops.minimum(per_beam(constraints["minimums"]), self.limits)
        if "prefix" in constraints:
            # One more column, which is read at all positions after the prefix.
            end = (self.limits * 0 + PAD)[:, None]
            self.prefix = ops.concatenate([per_beam(constraints["prefix"]), end], axis=1)
        self.no_repeat_ngram_size = no_repeat_ngram_size
        self.required = required_tokens(constraints, hypotheses)
        self.never = None
        if "slots" in constraints and self.required is None:
            self.never = constraints["slots"][0] >= 0

    @property
    def needs_vocabulary(self) -> bool:
        """Whether the constraints concern single tokens, and ``length_mask`` is not enough."""
        has_tokens = self.prefix is not None or self.required is not None
        return bool(self.no_repeat_ngram_size) or has_tokens

    def __call__(
        self, logits: Tensor, ids: Tensor, position: Tensor, used: Tensor = None
    ) -> Tensor:
        """Return the scores of all tokens, float32 ``[beams, vocabulary]``.

        They are the log-probabilities, with ``MIN_SCORE`` for tokens that are not allowed.

        Tokens are excluded after the normalisation, so sums equal those of forced scoring.

        Args:
            logits: ``[beams, vocabulary]``.
            ids: ``[beams, length]``, the tokens so far, padded with PAD.
            position: the number of tokens so far.
            used: the state of ``required``, if there are required tokens.
        """
        log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        vocabulary = ops.arange(ops.shape(log_probs)[-1], dtype="int32")
        forbidden = self._forbidden(vocabulary, ids, position, used)
        return ops.where(forbidden, MIN_SCORE, log_probs)

    def length_mask(self, is_eos: Tensor, position: Tensor) -> Tensor:
        """Return which tokens the length alone forbids, ``[batch, hypotheses, columns]``.

        Args:
            is_eos: ``[columns]``, which of some tokens, PAD and BOS not among them, are EOS.
            position: the number of tokens so far.
        """
        last = position + 1 >= self.limits
        forbidden = ops.logical_and(last[:, None], ops.logical_not(is_eos))
        if self.minimums is not None:
            early = position + 1 < self.minimums
            forbidden = ops.logical_or(forbidden, ops.logical_and(early[:, None], is_eos))
        return ops.reshape(forbidden, (-1, self.hypotheses, ops.shape(is_eos)[0]))

    def _forbidden(self, vocabulary: Tensor, ids: Tensor, position: Tensor, used: Tensor) -> Tensor:
        """Return which tokens are not allowed, ``[beams, vocabulary]``."""
        is_eos = ops.equal(vocabulary, EOS)
        forbidden = ops.logical_or(ops.equal(vocabulary, PAD), ops.equal(vocabulary, BOS))
        if self.required is not None:
            forbidden = ops.logical_or(forbidden, self.required.forbidden(used, position))
        if self.never is not None:
            forbidden = ops.logical_or(forbidden, self.never)
        if self.no_repeat_ngram_size:
            repeats = self._repeats_ngram(vocabulary, ids, position)
            forbidden = ops.logical_or(forbidden, repeats)
        if self.minimums is not None:
            early = (position + 1 < self.minimums)[:, None]
            if self.no_repeat_ngram_size:
                stuck = ops.all(ops.logical_or(forbidden, is_eos), axis=-1, keepdims=True)
                early = ops.logical_and(early, ops.logical_not(stuck))
            forbidden = ops.logical_or(forbidden, ops.logical_and(early, is_eos))
        last = (position + 1 >= self.limits)[:, None]
        if self.prefix is None:
            return ops.logical_or(forbidden, ops.logical_and(last, ops.logical_not(is_eos)))
        column = ops.minimum(position, ops.shape(self.prefix)[1] - 1)
        prefix_token = ops.take(self.prefix, column, axis=1)[:, None]
        prefix_token = ops.where(last, EOS, prefix_token)
        return ops.where(
            ops.equal(prefix_token, PAD), forbidden, ops.not_equal(vocabulary, prefix_token)
        )

    def _repeats_ngram(self, vocabulary: Tensor, ids: Tensor, position: Tensor) -> Tensor:
        """Return which tokens would complete an n-gram again, ``[beams, vocabulary]``."""
        n, end = self.no_repeat_ngram_size, ops.shape(ids)[1] - 1
        starts = ops.arange(end + 1, dtype="int32")
        # An n-gram matches if it is complete and its first n - 1 tokens are the last ones.
        matches = (starts + n <= position)[None]
        for back in range(1, n):
            recent = ops.take(ids, ops.maximum(position - back, 0), axis=1)[:, None]
            earlier = ops.take(ids, ops.minimum(starts + (n - 1 - back), end), axis=1)
            matches = ops.logical_and(matches, ops.equal(recent, earlier))
        last_tokens = ops.take(ids, ops.minimum(starts + (n - 1), end), axis=1)
        return _contains(ops.where(matches, last_tokens, PAD), vocabulary)


def _contains(ids: Tensor, vocabulary: Tensor) -> Tensor:
    """Return which tokens occur in ``ids`` ``[beams, length]``, as ``[beams, vocabulary]``."""
    beams = ops.arange(ops.shape(ids)[0], dtype="int32")[:, None] + ids * 0
    indices = ops.reshape(ops.stack([beams, ids], axis=-1), (-1, 2))
    ones = ops.cast(ops.ones_like(indices[:, 0]), "float32")
    return ops.scatter(indices, ones, (ops.shape(ids)[0], ops.shape(vocabulary)[0])) > 0.0
