"""Decoding of independent hypotheses, token by token."""

from typing import Any

from keras import ops

from regard.models.search import base
from regard.models.search.decode_loop import decode_loop
from regard.models.search.logits_processor import LogitsProcessor
from regard.models.search.required_tokens import required_tokens
from regard.models.tensors import State, Tensor
from regard.models.vocabulary import EOS, PAD


class RollOutSearch(base.Search):
    """Base class of the searches that append one token after another to independent hypotheses.

    Attributes:
        no_repeat_ngram_size: the length of n-grams that must not repeat; 0 disables it.
    """

    no_repeat_ngram_size: int = 0

    def choose(self, scores: Tensor, position: Tensor, inputs: base.RowInputs) -> Tensor:
        """Return the next tokens, ``[batch * hypotheses]``.

        Args:
            scores: ``[batch * hypotheses, vocabulary]``.
            position: the number of tokens so far.
            inputs: the constant tensors of the rows.
        """
        raise TypeError(f"{type(self).__name__} does not implement choose.")

    def start(self, state: State, inputs: base.RowInputs, longest: Tensor) -> State:
        """Return the hypotheses before the first token, ``[batch * hypotheses, ...]``."""
        limits = ops.repeat(inputs["constraints"]["limits"], self.hypotheses, axis=0)
        return {
            # The hypotheses are independent, so each has its own copy of the shared cache too.
            **base.tile_beams(
                {"state": base.beam_state(state), "shared_cache": base.shared_cache(state)},
                ops.shape(inputs["constraints"]["limits"])[0],
                self.hypotheses,
            ),
            "tokens": ops.repeat(inputs["first"], self.hypotheses),
            "ids": ops.zeros_like(limits)[:, None] + ops.zeros((1, longest), dtype="int32"),
            "total": ops.cast(ops.zeros_like(limits), "float32"),
        }

    def run(
        self, step: base.Step, state: State, inputs: base.RowInputs, longest: Tensor
    ) -> base.Hypotheses:
        """Append tokens until all hypotheses have ended; they stay in the order of their number."""
        beams = self.start(state, inputs, longest)
        if (required := required_tokens(inputs["constraints"], self.hypotheses)) is not None:
            beams["used"] = required.state()

        def result(_: Any, beams: State) -> tuple[Tensor, Tensor]:
            ids = ops.reshape(beams["ids"], (-1, self.hypotheses, longest))
            return ids, ops.reshape(beams["total"], (-1, self.hypotheses))

        ids, total = decode_loop(
            lambda inputs: RollOut(self, step, inputs), inputs, {}, beams, self.hypotheses, result
        )
        return base.Hypotheses(ids, base.count_tokens(ids), total, total)


class RollOut:
    """The steps of independent hypotheses, for some rows."""

    def __init__(self, search: RollOutSearch, step: base.Step, inputs: base.RowInputs):
        self.search, self.step, self.inputs = search, step, inputs
        self.processor = LogitsProcessor(
            inputs["constraints"], search.hypotheses, search.no_repeat_ngram_size
        )

    def unfinished(self, position: Tensor, _: Any, beams: State) -> Tensor:
        # A hypothesis ends at its limit at the latest, so EOS is the only condition.
        active = ops.not_equal(beams["tokens"], EOS)
        return ops.any(ops.reshape(active, (-1, self.search.hypotheses)), axis=1)

    def advance(self, position: Tensor, rows: Any, beams: State) -> tuple[Any, State]:
        tokens, ids = beams["tokens"], beams["ids"]
        is_finished = ops.equal(tokens, EOS)
        memory, cache = self.inputs["memory"], beams["shared_cache"]
        logits, state, _ = self.step(
            tokens, {**beams["state"], "shared_cache": cache, "memory": memory}
        )
        scores = self.processor(logits, ids, position, beams.get("used"))
        chosen = ops.cast(self.search.choose(scores, position, self.inputs), "int32")
        gain = ops.take_along_axis(scores, chosen[:, None], axis=-1)[:, 0]
        required = self.processor.required
        if required is not None:
            beams = {**beams, "used": required.advance(beams["used"], chosen, position)}
        return rows, {
            **beams,
            "state": base.beam_state(state),
            "shared_cache": base.shared_cache(state),
            "tokens": ops.where(is_finished, EOS, chosen),
            "ids": base.set_tokens(ids, ops.where(is_finished, PAD, chosen)[:, None], position),
            "total": beams["total"] + ops.where(is_finished, 0.0, gain),
        }
