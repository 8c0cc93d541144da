"""The alignment that looks at one position alone."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from models.attention.alignments.base import MASKED, Alignment, masked_softmax
from models.noise import gumbel_noise
from models.serialization import register

TRAININGS = ("reinforce", "straight_through")


@register
class HardAlignment(Alignment):
    """All weight on one position: the best at inference, one drawn from the softmax in training.

    Xu et al. 2015, "Show, Attend and Tell", §4.1. Since a draw has no gradient, scores learn in
    one of two ways: ``reinforce``, by a reward that the draw is given for (see
    ``models.reinforce``); or ``straight_through``, as if the weights were soft (Bengio et al.
    2013, "Estimating or Propagating Gradients Through Stochastic Neurons", §4). Some rows get the
    soft weights themselves, with their gradient, as in Xu et al.

    Args:
        training: ``reinforce`` or ``straight_through``.
        expectation: the share of the rows that get soft weights in training, chosen anew each
            time.
        seed: of the random numbers.

    Raises:
        ValueError: there is no such training, or the share is not between 0 and 1.
    """

    def __init__(
        self,
        training: str = "reinforce",
        expectation: float = 0.5,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if training not in TRAININGS:
            raise ValueError(f"Unknown training {training!r}. Choices: {', '.join(TRAININGS)}.")
        if not 0.0 <= expectation <= 1.0:
            raise ValueError(f"The share 'expectation' is from 0 to 1, not {expectation}.")
        self.settings: dict[str, Any] = {
            "training": training,
            "expectation": expectation,
            "seed": seed,
        }
        self.stochastic = training == "reinforce"
        self.generator = keras.random.SeedGenerator(seed, name="generator")

    def draw(self) -> Any:
        """Two numbers that are never the same twice: ``[2]``."""
        return self.generator.next()

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> Any:
        return self.look(scores, mask, query, position, training, drawn)[0]

    def look(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> tuple[Any, Any]:
        soft = masked_softmax(scores, mask)
        masked = ops.stop_gradient(ops.cast(scores, "float32"))
        if mask is not None:
            masked = ops.where(mask, masked, MASKED)
        if not training:
            weights = self._one(masked, mask)
        else:
            drawn = self.draw() if drawn is None else drawn
            weights = self._one(masked + self._noise(masked, position, drawn), mask)
            if not self.stochastic:
                weights = soft + ops.stop_gradient(weights - soft)
            weights = ops.where(self._softened(masked, drawn), soft, weights)
        # In float32, through which the reward's gradient goes: 1/p overflows float16.
        return ops.cast(weights, self.compute_dtype), soft

    def _one(self, scores: Any, mask: Any) -> Any:
        """1 for the greatest, 0 for all others and for what is masked."""
        best = ops.argmax(scores, axis=-1)[..., None]
        one = ops.equal(ops.cast(ops.arange(ops.shape(scores)[-1]), best.dtype), best)
        return ops.cast(one if mask is None else ops.logical_and(one, mask), "float32")

    def _noise(self, scores: Any, position: Any, drawn: Any) -> Any:
        """Gumbel noise: the greatest of scores + noise is drawn from the softmax of the scores.

        It is a function of row, step and source position: so a step draws the same whether it
        is taken in a loop or with all others at once.
        """
        if position is None:
            position = ops.arange(ops.shape(scores)[-2])[None]
        rows = ops.arange(ops.shape(scores)[0])[:, None, None]
        source = ops.arange(ops.shape(scores)[-1])
        return gumbel_noise(1, drawn[0], drawn[1], rows, position[..., None], source)

    def _softened(self, scores: Any, drawn: Any) -> Any:
        """Which rows get soft weights: ``[batch, 1, 1]``."""
        share = self.settings["expectation"]
        if share in (0.0, 1.0):
            bound = math.inf if share else -math.inf
        else:
            bound = -math.log(-math.log(share))  # what Gumbel noise is below with this probability
        rows = ops.arange(ops.shape(scores)[0])[:, None, None]
        return gumbel_noise(2, drawn[0], drawn[1], rows) < bound

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
