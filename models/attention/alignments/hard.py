"""Hard attention: all weight on one position."""

from typing import Any, Literal

import keras
from keras import ops

from regard.core.bounds import Share
from regard.models.attention.alignments.base import (
    MASKED,
    Alignment,
    is_largest,
    masked_softmax,
)
from regard.models.attention.base import resolve_training
from regard.models.noise import gumbel_noise, uniform_noise
from regard.models.serialization import checked_arguments, choice
from regard.models.tensors import Tensor


# The pipeline adds the reward that REINFORCE needs; a training in Python does not.
@choice("hard", training="reinforce", expectation=0.5)
class HardAlignment(Alignment):
    """One source position gets all weight (Xu 2015).

    Xu et al. 2015, "Show, Attend and Tell", §4.1: a sample of the softmax in training, the best
    position in inference. A sample has no gradient, so the scores learn
    in one of two ways: ``reinforce``, from a reward (``regard.models.reinforce``); or
    ``straight_through``, with the gradient of soft weights (Bengio et al. 2013, "Estimating or
    Propagating Gradients Through Stochastic Neurons", §4). As in Xu et al., some rows get the soft
    weights, with their gradient.

    With ``sample`` weights are samples in inference too. They are a function of the scores, the
    seed, the step and the source position, so that outputs do not depend on the other rows of a
    batch and an exported model repeats them; rows share the random numbers of a step.

    Args:
        training: Gradient estimator: REINFORCE, or the gradient of soft attention.
        expectation: Share of rows trained with soft weights.
        inference: Position in inference: the best one, or a reproducible sample.
        seed: the seed of the random numbers; in inference None is 0.
    """

    def __init__(
        self,
        training: Literal["reinforce", "straight_through"] = "straight_through",
        expectation: Share = 0.0,
        inference: Literal["argmax", "sample"] = "argmax",
        *,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.stochastic = training == "reinforce"
        self.seed = (seed or 0) & 0xFFFFFFFF
        self.generator = keras.random.SeedGenerator(seed, name="generator")

    def needs_position(self, training: bool = False, random_key: Any = None) -> bool:
        """Return whether steps share their random numbers, which then depend on the step."""
        if training:
            return random_key is not None
        return bool(self.settings["inference"] == "sample")

    def draw_key(self) -> Tensor:
        """Return a pair of numbers ``[2]`` that is different in every call."""
        return self.generator.next()

    # Keras passes `training` only to a call that names it.
    def call(
        self, scores: Tensor, mask: Tensor = None, training: bool = False, **context: Any
    ) -> Tensor:
        return self.align_with_distribution(scores, mask, training=training, **context)[0]

    def align_with_distribution(
        self,
        scores: Tensor,
        mask: Tensor = None,
        position: Tensor = None,
        training: bool | None = None,
        random_key: Tensor = None,
        **context: Any,
    ) -> tuple[Tensor, Tensor]:
        training = resolve_training(training)
        position = self.resolve_position(position, ops.shape(scores)[-2], training, random_key)
        soft = masked_softmax(scores, mask)
        masked = ops.stop_gradient(ops.cast(scores, "float32"))
        if mask is not None:
            masked = ops.where(mask, masked, MASKED)
        if training:
            random_key = self.draw_key() if random_key is None else random_key
            rows = ops.arange(ops.shape(masked)[0])
            noise = self._noise(masked, position, random_key, rows)
            weights = self._argmax_weights(masked + noise, mask)
            if not self.stochastic:
                weights = soft + ops.stop_gradient(weights - soft)
            weights = ops.where(self._uses_soft_weights(masked, random_key), soft, weights)
        else:
            if self.settings["inference"] == "sample":
                masked = masked + self._noise(masked, position, (self.seed, 0), ops.zeros(1))
            weights = self._argmax_weights(masked, mask)
        # The distribution stays float32 for the gradient of the reward: 1/p overflows float16.
        return ops.cast(weights, self.compute_dtype), soft

    def _argmax_weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return 1 at the first maximum, and 0 elsewhere and at masked positions."""
        if scores.shape[-1] == 0:  # which has no argmax
            return scores
        first = ops.argmax(ops.cast(is_largest(scores, axis=-1), "int32"), axis=-1)
        best = ops.one_hot(first, ops.shape(scores)[-1], dtype="float32")
        return best if mask is None else best * ops.cast(mask, "float32")

    def _noise(self, scores: Tensor, position: Tensor, random_key: Any, rows: Tensor) -> Tensor:
        """Return Gumbel noise: the argmax of scores + noise is a sample of the softmax.

        The noise is a function of row, step and source position, so a step samples the same
        position in a loop and in a computation of all steps at once.
        """
        rows, source = rows[:, None, None], ops.arange(ops.shape(scores)[-1])
        return gumbel_noise(1, random_key[0], random_key[1], rows, position[..., None], source)

    def _uses_soft_weights(self, scores: Tensor, random_key: Tensor) -> Tensor:
        """Return which rows get soft weights, ``[batch, 1, 1]``."""
        rows = ops.arange(ops.shape(scores)[0])[:, None, None]
        noise = uniform_noise(2, random_key[0], random_key[1], rows)
        return noise < self.settings["expectation"]
