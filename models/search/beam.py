"""Beam search that keeps finished hypotheses apart from the beam."""

import copy
from typing import Any

from keras import ops

from regard.models.search.base import (
    MIN_SCORE,
    Hypotheses,
    RowInputs,
    Search,
    Step,
    beam_state,
    count_tokens,
    set_tokens,
    shared_cache,
    tile_beams,
)
from regard.models.search.candidates import Candidates, gather
from regard.models.search.decode_loop import decode_loop, take_rows
from regard.models.search.greedy import GreedySearch
from regard.models.search.logits_processor import LogitsProcessor
from regard.models.search.phrases import PhraseCandidates, Phrases
from regard.models.search.required_tokens import required_tokens
from regard.models.tensors import State, Tensor
from regard.models.vocabulary import EOS

# Minimum attention of a source position, so that the coverage penalty stays finite.
MIN_COVERAGE = 1e-4
# The patience that compares prefixes as if they ended now.
PRESENT_LENGTH = "present_length"


class BeamSearch(Search):
    """Find the best hypotheses among the continuations of a beam of prefixes.

    Wu et al. 2016, "Google's Neural Machine Translation System", §7 (eq. 14): hypotheses are
    sorted by log P(y|x) / ((5 + |y|) / 6)^α + β Σ_i log(min(Σ_j p_ij, 1)), where |y| includes EOS
    and p_ij is the attention of the j-th token to the i-th source position. 5 is
    ``length_offset``, and 6 is one more. Prefixes of the same length are sorted by log P only.

    A row is finished when no prefix of its beam can beat the worst returned hypothesis:
    log-probabilities only fall, so the score of a prefix is at most its log-probability over the
    largest length penalty, and the coverage term is at most 0. With ``patience`` a row is also
    finished after ``patience * beam_size`` hypotheses have ended (Kasai et al. 2024, "A Call for
    Clarity in Beam Search: How It Works and When It Stops", §2). A patience of 1 stops when the
    beam is full, as most systems do, although a better hypothesis may follow. The patience
    ``PRESENT_LENGTH`` finishes a row when ``beam_size`` hypotheses are better than any prefix would
    be if it ended at its present length, as Hugging Face's Transformers do.

    A beam size of 1 without length penalty is greedy search.

    Args:
        beam_size: the number of prefixes, at least 1.
        length_penalty: α; 0 sorts by log-probability, which prefers short hypotheses.
        coverage_penalty: β, the weight of the penalty for source positions without attention.
        n_best: the number of hypotheses to return, at most ``beam_size``, which is the default.
        no_repeat_ngram_size: the length of n-grams that must not repeat; 0 disables it.
        patience: finish a row after ``patience * beam_size`` ended hypotheses, at least ``n_best``;
            by default it is finished when no better hypothesis is possible. Or
            ``PRESENT_LENGTH``.
        length_offset: n; 0 gives |y|^α.
    """

    def __init__(
        self,
        beam_size: int = 5,
        length_penalty: float = 0.6,
        coverage_penalty: float = 0.0,
        n_best: int | None = None,
        no_repeat_ngram_size: int = 0,
        patience: float | str | None = None,
        length_offset: float = 5.0,
    ):
        self.beam_size, self.beam_width, self.patience = beam_size, beam_size, patience
        self.length_penalty, self.length_offset = length_penalty, length_offset
        self.coverage_penalty = coverage_penalty
        self.hypotheses = beam_size if n_best is None else n_best
        self.max_finished = None if isinstance(patience, str) else patience
        self.no_repeat_ngram_size = no_repeat_ngram_size

    def best(self) -> Search:
        """Return this search for the best hypothesis only; it can stop earlier."""
        if self.beam_size == 1 and not (self.length_penalty or self.coverage_penalty):
            return GreedySearch(self.no_repeat_ngram_size)
        search = copy.copy(self)
        search.hypotheses = 1
        return search

    @property
    def compared(self) -> int:
        """The number of finished hypotheses with which a prefix is compared."""
        return self.beam_size if self.patience == PRESENT_LENGTH else self.hypotheses

    def penalty(self, length: Tensor) -> Tensor:
        """Return the divisor of the log-probability of a hypothesis of this length."""
        offset = self.length_offset
        ratio = (offset + ops.cast(length, "float32")) / (offset + 1.0)
        return ops.power(ratio, self.length_penalty)

    def run(self, step: Step, state: State, inputs: RowInputs, longest: Tensor) -> Hypotheses:
        size, limits = self.beam_size, inputs["constraints"]["limits"]
        batch = ops.shape(limits)[0]

        # Prefixes ("active") have log-probabilities, [batch, count], and hypotheses ("finished")
        # have scores too. At first a row has one prefix and no hypothesis.
        zeros = ops.tile(ops.zeros_like(limits)[:, None], (1, size))
        scores = ops.where(ops.arange(size) == 0, 0.0, MIN_SCORE) + ops.cast(zeros, "float32")
        empty = ops.full_like(scores[:, : self.compared], MIN_SCORE)
        ids = zeros[:, :, None] + ops.zeros((1, 1, longest), dtype="int32")
        rows = {
            "tokens": zeros + inputs["first"][:, None],
            "active": scores,
            "finished": (ids[:, : self.compared], empty, empty),
            "shared_cache": shared_cache(state),
        }
        if self.max_finished is not None:
            rows["finished_count"] = zeros[:, 0]
        beams = {
            "state": tile_beams(beam_state(state), batch, size),
            "ids": ops.reshape(ids, (-1, longest)),
        }
        if "phrases" in inputs["constraints"]:
            beams["phrases"] = Phrases(inputs["constraints"]["phrases"]).state(size)
        if (required := required_tokens(inputs["constraints"], size)) is not None:
            beams["used"] = required.state()
        if self.coverage_penalty:
            mask = ops.repeat(state["memory"]["mask"], size, axis=0)
            beams["coverage"] = ops.cast(ops.zeros_like(mask), "float32")
        ids, log_probs, scores = decode_loop(
            lambda inputs: _BeamSteps(self, step, inputs),
            inputs,
            rows,
            beams,
            size,
            lambda rows, beams: tuple(x[:, : self.hypotheses] for x in rows["finished"]),
        )
        lengths = ops.where(scores > MIN_SCORE / 2, count_tokens(ids), 0)
        return Hypotheses(ids, lengths, log_probs, scores)


class _BeamSteps:
    """The steps of a beam search, for some rows."""

    def __init__(self, search: BeamSearch, step: Step, inputs: RowInputs):
        self.search, self.step, self.size = search, step, search.beam_size
        self.memory, self.limits = inputs["memory"], inputs["constraints"]["limits"]
        phrases = inputs["constraints"].get("phrases")
        self.phrases = None if phrases is None else Phrases(phrases)
        # Without repetition, the tokens of a phrase could be forbidden.
        no_repeat = search.no_repeat_ngram_size if self.phrases is None else 0
        self.processor = LogitsProcessor(inputs["constraints"], self.size, no_repeat)
        self.max_penalty = search.penalty(self.limits)
        rows = ops.shape(self.limits)[0]
        self.first_beams = ops.arange(rows, dtype="int32")[:, None] * self.size

    def unfinished(self, position: Tensor, rows: State, beams: Any) -> Tensor:
        best = ops.max(rows["active"], axis=1)
        finished = ops.logical_or(best <= MIN_SCORE / 2, position >= self.limits)
        penalty = self.max_penalty
        if self.search.patience == PRESENT_LENGTH:
            penalty = self.search.penalty(ops.maximum(position, 1))
        finished = ops.logical_or(finished, rows["finished"][2][:, -1] >= best / penalty)
        if self.search.max_finished is not None:
            count = ops.cast(rows["finished_count"], "float32")
            finished = ops.logical_or(finished, count >= self.search.max_finished * self.size)
        return ops.logical_not(finished)

    def advance(self, position: Tensor, rows: State, beams: State) -> tuple[State, State]:
        logits, state, alignment = self.step(
            ops.reshape(rows["tokens"], (-1,)),
            {**beams["state"], "shared_cache": rows["shared_cache"], "memory": self.memory},
        )
        candidates = self._candidates(logits, beams, position, rows["active"])
        beams = {**beams, "state": beam_state(state)}
        if self.search.coverage_penalty:
            beams["coverage"] = beams["coverage"] + ops.cast(alignment, "float32")

        finished = self._finished(position, rows, beams, candidates)
        scores, chosen = candidates.best(with_eos=False)
        # Bounded, so that impossible scores do not fall further with every step.
        scores = ops.maximum(scores, MIN_SCORE)
        if self.search.patience == PRESENT_LENGTH:
            # Otherwise the prefixes of a finished row could seem better again when they are longer.
            active = self.unfinished(position, rows, beams)[:, None]
            scores = ops.where(active, scores, MIN_SCORE)
        parents, tokens = candidates.prefixes(chosen), candidates.tokens(chosen)
        beams = take_rows(beams, ops.reshape(self.first_beams + parents, (-1,)))
        beams["ids"] = set_tokens(beams["ids"], ops.reshape(tokens, (-1, 1)), position)
        if self.phrases is not None:
            beams["phrases"] = self.phrases.advance(beams["phrases"], tokens)
        if (required := self.processor.required) is not None:
            tokens_of_beams = ops.reshape(tokens, (-1,))
            beams["used"] = required.advance(beams["used"], tokens_of_beams, position)
        changes = {"tokens": tokens, "active": scores, "shared_cache": shared_cache(state)}
        return {**rows, **changes, **finished}, beams

    def _candidates(
        self, logits: Tensor, beams: State, position: Tensor, scores: Tensor
    ) -> Candidates:
        arguments: dict[str, Any] = {
            "processor": self.processor,
            "logits": logits,
            "ids": beams["ids"],
            "used": beams.get("used"),
            "position": position,
            "prefix_scores": scores,
        }
        if self.phrases is None:
            return Candidates(**arguments)
        return PhraseCandidates(self.phrases, beams["phrases"], self.limits, **arguments)

    def _finished(
        self, position: Tensor, rows: State, beams: State, candidates: Candidates
    ) -> State:
        """Return the best of the old hypotheses and of those that end here, and their count."""
        # An end counts if it is among the best of the beam, so that a beam of 1 is greedy.
        log_probs, chosen = candidates.best(with_eos=True)
        ends = ops.logical_and(candidates.are_eos(chosen), log_probs > MIN_SCORE / 2)
        if self.search.patience is not None:  # a finished row stays as it is
            ends = ops.logical_and(ends, self.unfinished(position, rows, beams)[:, None])
        parents = candidates.prefixes(chosen)
        scores = log_probs / self.search.penalty(position + 1)
        if self.search.coverage_penalty:
            mask = ops.repeat(self.memory["mask"], self.size, axis=0)
            coverage = ops.reshape(_log_coverage(beams["coverage"], mask), (-1, self.size))
            scores = scores + self.search.coverage_penalty * gather(coverage, parents)
        scores = ops.where(ends, scores, MIN_SCORE)
        ids = set_tokens(ops.take(beams["ids"], self.first_beams + parents, axis=0), EOS, position)
        ids, log_probs, scores = (
            ops.concatenate(both, axis=1)
            for both in zip(rows["finished"], (ids, log_probs, scores), strict=True)
        )
        scores, order = ops.top_k(scores, self.search.compared)
        result = {"finished": (gather(ids, order), gather(log_probs, order), scores)}
        if self.search.max_finished is not None:
            count = ops.sum(ops.cast(ends, "int32"), axis=1)
            result["finished_count"] = rows["finished_count"] + count
        return result


def _log_coverage(coverage: Tensor, mask: Tensor) -> Tensor:
    """Return Σ log(min(coverage, 1)) over the source, ``[beams, source]`` → ``[beams]``."""
    log_coverage = ops.log(ops.clip(coverage, MIN_COVERAGE, 1.0))
    return ops.sum(ops.where(mask, log_coverage, 0.0), axis=-1)
