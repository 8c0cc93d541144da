"""Sampling: every piece is drawn at random."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.noise import gumbel_noise
from models.search.base import IMPOSSIBLE, Hypotheses, Search, Step
from models.search.rollout import roll_out
from models.search.rules import asked

# Far below everything that can be worth something, noise included.
NOTHING = -1e30


class SamplingSearch(Search):
    """Draws hypotheses from the model; the likeliest of those drawn comes first.

    A piece is drawn with the Gumbel-max trick from softmax(log P / temperature), cut to the
    ``top_k`` best pieces (Fan et al. 2018, "Hierarchical Neural Story Generation", §5.1) and then
    to the fewest pieces that together have the probability ``top_p`` (Holtzman et al. 2020, "The
    Curious Case of Neural Text Degeneration", §3.1).

    Args:
        temperature: below 1 sharper than the model, above 1 flatter.
        top_k: how many best pieces may be drawn; 0: all.
        top_p: the probability that the pieces that may be drawn have together; 1: all.
        samples: how many hypotheses a row gets.
        seed: the same seed draws the same for the same key of a row.

    Raises:
        ValueError: ``temperature`` or ``top_p`` is not above 0, ``top_p`` is above 1, ``top_k``
            is negative, or ``samples`` is less than 1.
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        samples: int = 1,
        seed: int = 0,
    ):
        if temperature <= 0:
            raise ValueError(f"temperature must be above 0, not {temperature}.")
        if top_k < 0:
            raise ValueError(f"top_k must not be negative, but is {top_k}.")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {top_p}.")
        if samples < 1:
            raise ValueError(f"samples must be at least 1, not {samples}.")
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.hypotheses, self.seed = samples, seed

    def __call__(
        self,
        step: Step,
        state: dict[str, Any],
        limits: Any,
        *,
        minimums: Any = None,
        prefix: Any = None,
        keys: Any = None,
    ) -> Hypotheses:
        keys = ops.arange(ops.shape(limits)[0]) if keys is None else keys
        told = {"asked": asked(limits, minimums, prefix), "keys": ops.cast(keys, "int32")}

        def choose(worth: Any, position: Any, told: dict[str, Any]) -> Any:
            batch = ops.shape(told["keys"])[0]
            keys = ops.repeat(told["keys"], self.hypotheses)[:, None]
            numbers = ops.tile(ops.arange(self.hypotheses, dtype="int32"), [batch])[:, None]
            # The best piece is worth 0, so that no temperature makes it infinite.
            best = ops.max(worth, axis=-1, keepdims=True)
            warm = (worth - best) / self.temperature
            warm = ops.where(worth > IMPOSSIBLE / 2, warm, NOTHING)
            if not self.top_k and self.top_p == 1.0:
                pieces = ops.arange(ops.shape(worth)[-1], dtype="int32")[None]
                noise = gumbel_noise(self.seed, keys, numbers, position, pieces)
                return ops.argmax(warm + noise, axis=-1)
            warm, pieces = self._cut(warm)
            noise = gumbel_noise(self.seed, keys, numbers, position, pieces)
            chosen = ops.argmax(warm + noise, axis=-1)[:, None]
            return ops.take_along_axis(pieces, chosen, axis=-1)[:, 0]

        ids, lengths, total = roll_out(step, state, told, choose, self.hypotheses)
        total, order = ops.top_k(total, self.hypotheses)
        return Hypotheses(
            ops.take_along_axis(ids, order[:, :, None], axis=1),
            ops.take_along_axis(lengths, order, axis=1),
            total,
            total,
        )

    def _cut(self, worth: Any) -> tuple[Any, Any]:
        """The pieces that may be drawn, the best first, as ``[rows, pieces]``: worth and ids.

        What misses the cut is worth nothing at all, so that no noise lifts it above the rest.
        """
        count = ops.shape(worth)[-1]
        if self.top_k:
            known = worth.shape[-1] is not None
            count = (min if known else ops.minimum)(self.top_k, count)
        worth, pieces = ops.top_k(worth, count)
        if self.top_p < 1.0:
            probabilities = ops.softmax(worth, axis=-1)
            before = ops.cumsum(probabilities, axis=-1) - probabilities
            # The best piece stays, whatever rounding does to a sum that starts at zero.
            inside = ops.logical_or(before < self.top_p, ops.arange(ops.shape(worth)[-1]) == 0)
            worth = ops.where(inside, worth, NOTHING)
        return worth, pieces
