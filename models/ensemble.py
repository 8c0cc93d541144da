"""Several models that answer as one: the mean of their probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from models.decoders.base import Decoder
from models.search.base import moving, unmoved
from models.seq2seq import Seq2Seq
from models.serialization import layer_config, layer_from_config, register


class Encoders(keras.layers.Layer):
    """Encoders side by side; their memory is the memories of all.

    Args:
        encoders: layers from ids ``[batch, source]`` to a memory.
    """

    def __init__(self, encoders: Sequence[Any], **kwargs: Any):
        super().__init__(**kwargs)
        self.encoders = list(encoders)
        self.embedding = self.encoders[0].embedding

    def build(self, ids_shape: Any = None) -> None:
        _build(self.encoders)
        self.built = True

    def call(self, ids: Any, training: bool = False) -> dict[str, Any]:
        memories = [encoder(ids, training=training) for encoder in self.encoders]
        return {"models": memories, "mask": memories[0]["mask"]}


class Decoders(Decoder):
    """Decoders side by side, each with a memory and a state of its own.

    The logits are the logarithm of the mean of the probabilities, in float32, and the alignment
    is the mean of the alignments.

    Args:
        decoders: decoders of one vocabulary.
    """

    def __init__(self, decoders: Sequence[Decoder], **kwargs: Any):
        super().__init__(**kwargs)
        self.decoders = list(decoders)
        self.embedding = self.decoders[0].embedding

    def build(self, tokens_shape: Any = None) -> None:
        _build(self.decoders)
        self.built = True

    @property
    def copies(self) -> bool:
        return any(decoder.copies for decoder in self.decoders)

    def start(
        self, memory: dict[str, Any], longest: Any = None, hypotheses: int = 1
    ) -> dict[str, Any]:
        pairs = zip(self.decoders, _memories(memory), strict=True)
        states = [decoder.start(seen, longest, hypotheses) for decoder, seen in pairs]
        memories = [state["memory"] for state in states]
        return _together({"models": memories, "mask": memory["mask"]}, states)

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        memories = state["memory"]["models"]
        each = zip(self.decoders, state["models"], state["written"], memories, strict=True)
        found = [
            decoder.step(tokens, {**own, "written": written, "memory": seen})
            for decoder, own, written, seen in each
        ]
        logits, states, alignments = zip(*found, strict=True)
        return _mean_probability(logits), _together(state["memory"], states), _mean(alignments)

    def unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any]:
        pairs = zip(self.decoders, _memories(memory), strict=True)
        found = [decoder.unroll(tokens, seen, training=training) for decoder, seen in pairs]
        logits, alignments = zip(*found, strict=True)
        return _mean_probability(logits), _mean(alignments)


@register
class Ensemble(Seq2Seq):
    """Trained models of one vocabulary that decode together.

    Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks", §3.6. The models
    may differ in everything else. Every search works with it as with one model, and its scores
    are those of the mean of the models' probabilities.

    Args:
        models: the models; their weights stay theirs.

    Raises:
        ValueError: there is no model, or the vocabularies differ in size.
    """

    def __init__(self, models: Sequence[Seq2Seq], name: str | None = None, dtype: Any = None):
        models = list(models)
        if not models:
            raise ValueError("An ensemble has at least one model.")
        for side in ("encoder", "decoder"):
            sizes = [getattr(model, side).embedding.vocabulary for model in models]
            if len(set(sizes)) > 1:
                raise ValueError(
                    f"The models of an ensemble share one vocabulary, but their {side}s know "
                    f"{', '.join(map(str, sizes))} pieces."
                )
        super().__init__(
            Encoders([model.encoder for model in models], name="encoders"),
            Decoders([model.decoder for model in models], name="decoders"),
            name=name,
            dtype=dtype,
        )
        self.models = models

    def get_config(self) -> dict[str, Any]:
        models = [layer_config(model) for model in self.models]
        return {"name": self.name, "dtype": self.dtype_policy.name, "models": models}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Ensemble:
        models = [layer_from_config(model) for model in config["models"]]
        return cls(**{**config, "models": models})


def _memories(memory: dict[str, Any]) -> list[dict[str, Any]]:
    """The memory of each model, with the ids of the source where a decoder copies them."""
    common = {"ids": memory["ids"]} if "ids" in memory else {}
    return [{**seen, **common} for seen in memory["models"]]


def _together(memory: dict[str, Any], states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The states of all models as one, with one memory."""
    return {
        "memory": memory,
        "written": [unmoved(state) for state in states],
        "models": [moving(state) for state in states],
    }


def _build(layers: Sequence[keras.layers.Layer]) -> None:
    for layer in layers:
        if not layer.built:
            layer.build()


def _mean_probability(logits: Sequence[Any]) -> Any:
    """The logarithm of the mean of softmax(logits) over the models, in float32."""
    logp = [ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in logits]
    if len(logp) == 1:
        return logp[0]
    return ops.logsumexp(ops.stack(logp, axis=0), axis=0) - math.log(len(logp))


def _mean(alignments: Sequence[Any]) -> Any:
    return sum(ops.cast(x, "float32") for x in alignments) / len(alignments)
