"""Scheduled sampling: a decoder's own tokens as its inputs during training."""

from typing import Any

import keras
from keras import ops

from regard.models.decoders.base import Decoder
from regard.models.decoders.recurrent import RecurrentDecoder
from regard.models.noise import gumbel_noise, uniform_noise
from regard.models.serialization import ConfiguredLayer, check_name, constructor_arguments, register
from regard.models.tensors import Memory, Tensor
from regard.models.vocabulary import BOS, EOS, PAD

SCHEDULES = ("linear", "exponential", "inverse_sigmoid")


@register
class ScheduledSampling(ConfiguredLayer):
    """Replaces previous tokens of a target by samples of the model, more often with every batch.

    Bengio et al. 2015, "Scheduled Sampling for Sequence Prediction with Recurrent Neural
    Networks", §2.4: a coin per token keeps the token of the target with probability ε_i in batch
    i, which falls linearly from 1 to ``minimum``, or is k^i or k / (k + exp(i / k)) and never below
    ``minimum``. A recurrent decoder samples each token from its distribution after the tokens that
    it has read, without dropout; no gradient passes through the samples. A Transformer samples all
    tokens after the target's own (Mihaylova and Martins 2019, "Scheduled Sampling for
    Transformers", §3). Padding and the first token never change.

    The counter of the random generator is the number i, so that checkpoints contain it.

    Args:
        schedule: one of ``SCHEDULES``.
        minimum: the lowest probability of the target's token.
        k: the constant of ``exponential``, below 1, or of ``inverse_sigmoid``, from 1.
        steps: the steps of ``linear`` until the minimum.
        batches_per_step: the number of batches that count as one step.

    Raises:
        ValueError: the schedule is unknown.
    """

    def __init__(
        self,
        schedule: str = "inverse_sigmoid",
        minimum: float = 0.0,
        k: float = 1000.0,
        steps: int = 10_000,
        batches_per_step: int = 1,
        **kwargs: Any,
    ):
        super().__init__(autocast=False, **kwargs)  # the memory keeps the dtype of the encoder
        self.settings = constructor_arguments(locals())
        check_name("schedule", SCHEDULES, schedule)
        self.seed_generator = keras.random.SeedGenerator()
        self.built = True

    def target_probability(self, batch: Tensor) -> Tensor:
        """Return the probability of the target's token in a batch, counted from 0."""
        settings, k = self.settings, self.settings["k"]
        step = ops.floor(ops.cast(batch, "float32") / settings["batches_per_step"])
        if settings["schedule"] == "linear":
            share = ops.minimum(step / settings["steps"], 1.0)
            return 1.0 - (1.0 - settings["minimum"]) * share
        if settings["schedule"] == "exponential":
            probability = ops.power(ops.cast(k, "float32"), step)
        else:
            probability = ops.sigmoid(ops.log(ops.cast(k, "float32")) - step / k)
        return ops.maximum(probability, settings["minimum"])

    def call(self, previous: Tensor, memory: Memory, decoder: Decoder) -> Tensor:
        """Return previous tokens ``[batch, target]``, some of them sampled.

        Args:
            previous: the previous tokens of the target, ``[batch, target]``.
            memory: the output of the encoder.
            decoder: the decoder that samples.
        """
        seed = self.seed_generator.next()
        rows, target = ops.shape(previous)
        row, position = ops.arange(rows)[:, None], ops.arange(target)[None]
        coins = uniform_noise(0, seed[0], seed[1], row, position)
        keeps = ops.logical_or(coins < self.target_probability(seed[1]), position == 0)
        keeps = ops.logical_or(keeps, ops.equal(previous, PAD))

        def sample(logits: Tensor, position: Tensor) -> Tensor:
            """Sample from logits ``[batch, ..., vocabulary]`` among the tokens of texts."""
            size = decoder.embedding.vocabulary
            token = ops.arange(size)
            special = ops.logical_or(ops.logical_or(token == PAD, token == BOS), token == EOS)
            row_of_logits = ops.reshape(row, (-1, *[1] * (len(logits.shape) - 1)))
            noise = gumbel_noise(1, seed[0], seed[1], position, row_of_logits, token)
            logits = ops.cast(logits[..., :size], "float32") + noise
            return ops.cast(ops.argmax(ops.where(special, -1e9, logits), axis=-1), previous.dtype)

        if isinstance(decoder, RecurrentDecoder):
            return self._decode_steps(previous, keeps, memory, decoder, sample)
        logits, _ = decoder.unroll(previous, memory)
        sampled = sample(logits, position[..., None])
        sampled = ops.concatenate([previous[:, :1], sampled[:, :-1]], axis=1)
        return ops.where(keeps, previous, sampled)

    @staticmethod
    def _decode_steps(
        previous: Tensor, keeps: Tensor, memory: Memory, decoder: Decoder, sample: Any
    ) -> Tensor:
        """Decode step by step, with every sample as an input of the next step."""
        state = decoder.start(memory)
        prepared = state.pop("memory")

        def step(carry: Any, now: Tensor) -> tuple[Any, Any]:
            _, state, sampled, position = carry
            tokens = ops.where(ops.equal(now[1], 1), now[0], sampled)
            logits, state, _ = decoder.step(tokens, {"memory": prepared, **state})
            state.pop("memory")
            carry = (tokens, state, sample(logits, position), position + 1)
            return carry, carry

        inputs = ops.stack([previous, ops.cast(keeps, previous.dtype)])
        start = (previous[:, 0], state, previous[:, 0], ops.zeros((), "int32"))
        _, (tokens, *_) = ops.scan(step, start, ops.transpose(inputs, (2, 0, 1)))
        return ops.transpose(tokens)
