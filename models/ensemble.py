"""Ensembles: several models that decode together by the mean of their probabilities."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.decoders.base import Decoder
from regard.models.search.base import MIN_SCORE, beam_state, shared_cache
from regard.models.seq2seq import Seq2Seq
from regard.models.tensors import Memory, State, Tensor


class EnsembleEncoder(keras.layers.Layer):
    """The encoders of all models; the memory contains all their memories.

    Args:
        encoders: layers from ids ``[batch, source]`` to a memory.
    """

    def __init__(self, encoders: Sequence[Any], **kwargs: Any):
        super().__init__(**kwargs)
        self.encoders = list(encoders)
        self.embedding = self.encoders[0].embedding

    def build(self, ids_shape: Any = None) -> None:
        _build(self.encoders)

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        memories = [encoder(ids, training=training) for encoder in self.encoders]
        return {"models": memories, "mask": memories[0]["mask"]}


class EnsembleDecoder(Decoder):
    """The decoders of all models, each with its own memory and state.

    Logits are the logarithm of the mean probability in float32; the alignment is the mean of the
    alignments.

    Args:
        decoders: decoders with one vocabulary.
    """

    def __init__(self, decoders: Sequence[Decoder], **kwargs: Any):
        super().__init__(**kwargs)
        self.decoders = list(decoders)
        self.embedding = self.decoders[0].embedding

    def build(self, tokens_shape: Any = None) -> None:
        _build(self.decoders)

    @property
    def copies(self) -> bool:
        return any(decoder.copies for decoder in self.decoders)

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        states = [
            decoder.start(own_memory, max_length, hypotheses)
            for decoder, own_memory in zip(self.decoders, _memories(memory), strict=True)
        ]
        memories = [state["memory"] for state in states]
        return _join_states({"models": memories, "mask": memory["mask"]}, states)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        memories = state["memory"]["models"]
        models = zip(self.decoders, state["models"], state["shared_cache"], memories, strict=True)
        outputs = [
            decoder.step(tokens, {**own_state, "shared_cache": cache, "memory": memory})
            for decoder, own_state, cache, memory in models
        ]
        logits, states, alignments = zip(*outputs, strict=True)
        probability = _mean_probability(self._extend(logits, alignments))
        return probability, _join_states(state["memory"], states), _mean(alignments)

    def unroll(
        self, tokens: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        outputs = [
            decoder.unroll(tokens, own_memory, training=training)
            for decoder, own_memory in zip(self.decoders, _memories(memory), strict=True)
        ]
        logits, alignments = zip(*outputs, strict=True)
        return _mean_probability(self._extend(logits, alignments)), _mean(alignments)

    def _extend(self, logits: Sequence[Tensor], alignments: Sequence[Tensor]) -> Sequence[Tensor]:
        """Give models that do not copy the columns of those that do, as impossible tokens."""
        if not self.copies:
            return logits
        rows = zip(self.decoders, logits, alignments, strict=True)
        return [
            x
            if decoder.copies
            else ops.concatenate([ops.cast(x, "float32"), ops.full_like(weights, MIN_SCORE)], -1)
            for decoder, x, weights in rows
        ]


class Ensemble(Seq2Seq):
    """Trained models with one vocabulary that decode together.

    Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks", §3.6. The models
    may differ in everything else. Every search works with an ensemble as with one model; its
    scores are those of the mean of the models' probabilities.

    Args:
        models: at least one model; the ensemble uses their weights.
    """

    def __init__(self, models: Sequence[Seq2Seq]):
        first = {str(model.settings["first_tokens"]) for model in models}
        if len(first) > 1:
            raise ValueError("The models of an ensemble must read the same first tokens.")
        super().__init__(
            EnsembleEncoder([model.encoder for model in models], name="encoders"),
            EnsembleDecoder([model.decoder for model in models], name="decoders"),
            first_tokens=models[0].settings["first_tokens"],
        )


def _memories(memory: Memory) -> list[Memory]:
    """Return the memory of each model, with the source ids if a decoder copies them."""
    common = {"ids": memory["ids"]} if "ids" in memory else {}
    return [{**own_memory, **common} for own_memory in memory["models"]]


def _join_states(memory: Memory, states: Sequence[State]) -> State:
    """Return one state of all models' states, with one memory."""
    return {
        "memory": memory,
        "shared_cache": [shared_cache(state) for state in states],
        "models": [beam_state(state) for state in states],
    }


def _build(layers: Sequence[keras.layers.Layer]) -> None:
    for layer in layers:
        if not layer.built:
            layer.build()


def _mean_probability(logits: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the models' mean of softmax(logits), in float32."""
    log_probs = [ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in logits]
    if len(log_probs) == 1:
        return log_probs[0]
    return ops.logsumexp(ops.stack(log_probs, axis=0), axis=0) - math.log(len(log_probs))


def _mean(alignments: Sequence[Tensor]) -> Tensor:
    return sum(ops.cast(x, "float32") for x in alignments) / len(alignments)
