"""Decoding of independent hypotheses, token by token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from regard.models.search.base import (
    RowInputs,
    Step,
    beam_state,
    count_tokens,
    set_tokens,
    shared_cache,
    tile_beams,
)
from regard.models.search.decode_loop import decode_loop
from regard.models.search.logits_processor import LogitsProcessor, Penalties
from regard.models.tensors import State, Tensor
from regard.models.vocabulary import BOS, EOS, PAD

# From scores ``[batch * hypotheses, vocabulary]``, position and inputs to the next tokens.
Choose = Callable[[Tensor, Tensor, RowInputs], Tensor]


def roll_out(
    step: Step,
    state: State,
    inputs: RowInputs,
    choose: Choose,
    hypotheses: int = 1,
    penalties: Penalties | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Append one token after another until all hypotheses have ended.

    Args:
        step: the decoder's ``step``.
        state: the decoder's state before its first token, ``batch`` rows.
        inputs: the constant tensors of the rows.
        choose: returns the next tokens ``[batch * hypotheses]``.
        hypotheses: the number of hypotheses per row.
        penalties: the penalties of the logits processor.

    Returns:
        Ids ``[batch, hypotheses, length]``, lengths and log-probabilities ``[batch, hypotheses]``,
        as in ``Hypotheses``.
    """
    limits = ops.repeat(inputs["constraints"]["limits"], hypotheses, axis=0)
    longest = ops.max(limits, initial=1)
    beams = {
        # The hypotheses are independent, so each has its own copy of the shared cache too.
        **tile_beams(
            {"state": beam_state(state), "shared_cache": shared_cache(state)},
            ops.shape(inputs["constraints"]["limits"])[0],
            hypotheses,
        ),
        "tokens": ops.full_like(limits, BOS),
        "ids": ops.zeros_like(limits)[:, None] + ops.zeros((1, longest), dtype="int32"),
        "total": ops.cast(ops.zeros_like(limits), "float32"),
    }

    def create_steps(inputs: RowInputs) -> _RollOut:
        processor = LogitsProcessor(inputs["constraints"], hypotheses, penalties)
        return _RollOut(step, processor, inputs, choose)

    def result(_: Any, beams: State) -> tuple[Tensor, Tensor]:
        ids = ops.reshape(beams["ids"], (-1, hypotheses, longest))
        return ids, ops.reshape(beams["total"], (-1, hypotheses))

    ids, total = decode_loop(create_steps, inputs, {}, beams, hypotheses, result)
    return ids, count_tokens(ids), total


class _RollOut:
    """The steps of independent hypotheses, for some rows."""

    def __init__(self, step: Step, processor: LogitsProcessor, inputs: RowInputs, choose: Choose):
        self.step, self.processor, self.inputs, self.choose = step, processor, inputs, choose

    def unfinished(self, position: Tensor, _: Any, beams: State) -> Tensor:
        # A hypothesis ends at its limit at the latest, so EOS is the only condition.
        active = ops.not_equal(beams["tokens"], EOS)
        return ops.any(ops.reshape(active, (-1, self.processor.hypotheses)), axis=1)

    def advance(self, position: Tensor, rows: Any, beams: State) -> tuple[Any, State]:
        tokens, ids = beams["tokens"], beams["ids"]
        is_finished = ops.equal(tokens, EOS)
        memory, cache = self.inputs["memory"], beams["shared_cache"]
        logits, state, _ = self.step(
            tokens, {**beams["state"], "shared_cache": cache, "memory": memory}
        )
        log_probs, scores = self.processor(logits, ids, position)
        chosen = ops.cast(self.choose(scores, position, self.inputs), "int32")
        gain = ops.take_along_axis(log_probs, chosen[:, None], axis=-1)[:, 0]
        return rows, {
            "state": beam_state(state),
            "shared_cache": shared_cache(state),
            "tokens": ops.where(is_finished, EOS, chosen),
            "ids": set_tokens(ids, ops.where(is_finished, PAD, chosen)[:, None], position),
            "total": beams["total"] + ops.where(is_finished, 0.0, gain),
        }
