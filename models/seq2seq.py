"""Sequence to sequence: an encoder, a decoder, a teacher-forced loss, a search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from models.losses import token_losses
from models.penalties import PENALTIES, penalty
from models.reinforce import Reinforce
from models.search import Hypotheses, Search
from models.serialization import layer_config, layer_from_config, register
from models.trained import TrainedModel
from models.vocabulary import BOS, EOS, PAD


@register
class Seq2Seq(TrainedModel):
    """Maps source ids to target ids.

    Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks", with whatever
    attention the decoder has.

    Args:
        encoder: a layer from ids ``[batch, source]`` to a memory (see ``models.decoders.base``).
        decoder: a ``Decoder``.
        label_smoothing: the share of probability spread over the vocabulary in the loss.
        share_embeddings: the decoder reads its pieces with the encoder's embedding (Press and
            Wolf 2017, "Using the Output Embedding to Improve Language Models", §3); both sides
            must have one vocabulary.
        reinforce: the arguments of ``Reinforce``, for decoders that choose at random where to
            look.
        penalties: the weight of each of ``PENALTIES`` in the training's loss; 0: without it.

    ``call`` takes a dictionary of ``source`` ``[batch, source]`` and ``target`` ``[batch,
    target]`` (pieces, then EOS, then PAD) and gives one of ``logits`` ``[batch, target,
    vocabulary]`` of the target's pieces; of a stochastic decoder also ``alignment`` and the
    ``distribution`` it was drawn from, ``[batch, target, source]``; with penalties ``alignment``
    and the memory's ``mask``. ``fit`` needs nothing else: the target is its own label.

    Raises:
        ValueError: there is no such penalty.
    """

    def __init__(
        self,
        encoder: keras.layers.Layer,
        decoder: keras.layers.Layer,
        label_smoothing: float = 0.0,
        share_embeddings: bool = False,
        reinforce: dict[str, Any] | None = None,
        penalties: dict[str, float] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        unknown = sorted({*(penalties or {})} - {*PENALTIES})
        if unknown:
            choices = ", ".join(sorted(PENALTIES))
            raise ValueError(f"Unknown penalty {unknown[0]!r}. Choices: {choices}.")
        self.settings: dict[str, Any] = {
            "label_smoothing": label_smoothing,
            "share_embeddings": share_embeddings,
            "reinforce": dict(reinforce or {}),
            "penalties": {name: x for name, x in (penalties or {}).items() if x},
        }
        self.encoder = encoder
        self.decoder = decoder
        if share_embeddings:
            decoder.use_embedding(encoder.embedding)
        self.reinforce = (
            Reinforce(**self.settings["reinforce"], name="reinforce")
            if decoder.stochastic
            else None
        )
        self.accuracy = keras.metrics.Mean(name="accuracy")

    def build(self, inputs_shape: Any = None) -> None:
        for part in (self.encoder, self.decoder, self.reinforce):
            if part is not None and not part.built:  # from_config builds what it reads
                part.build()
        self.built = True

    def call(self, inputs: dict[str, Any], training: bool = False) -> dict[str, Any]:
        memory = self.remember(inputs["source"], training=training)
        before = shift(inputs["target"])
        outputs = {"mask": memory["mask"]} if self.settings["penalties"] else {}
        if self.reinforce is not None:
            found = self.decoder.unroll_with_distribution(before, memory, training=training)
            named = zip(("logits", "alignment", "distribution"), found, strict=True)
            return {**outputs, **dict(named)}
        logits, alignment = self.decoder.unroll(before, memory, training=training)
        return {**outputs, "logits": logits, **({"alignment": alignment} if outputs else {})}

    def remember(self, source: Any, training: bool = False) -> dict[str, Any]:
        """The memory of a source ``[batch, source]``, with all that the decoder needs of it."""
        memory = self.encoder(source, training=training)
        return {**memory, "ids": source} if self.decoder.copies else memory

    def teacher_force(self, source: Any, target: Any, training: bool = False) -> tuple[Any, Any]:
        """Teacher forcing: logits ``[batch, target, vocabulary]`` and alignments."""
        memory = self.remember(source, training=training)
        return self.decoder.unroll(shift(target), memory, training=training)

    def heads(self, source: Any, target: Any) -> dict[str, Any]:
        """Where each head of each layer looks; nothing for a model without a Transformer.

        Args:
            source: ``[batch, source]``.
            target: ``[batch, target]``, as in ``call``.

        Returns:
            What there is of ``source`` ``[batch, layers, heads, source, source]``, where the
            encoder looked at the source, and the decoder's ``cross`` and ``target`` (see
            ``Decoder.heads``).
        """
        found = {}
        if "source" in self.with_heads:
            _, found["source"] = self.encoder.look(source)
        return {**found, **self.decoder.heads(shift(target), self.remember(source))}

    @property
    def with_heads(self) -> tuple[str, ...]:
        """The names of what ``heads`` gives."""
        return (*getattr(self.encoder, "with_heads", ()), *self.decoder.with_heads)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """The mean loss of a target piece, in nats; updates the running means."""
        target = x["target"]
        real = ops.cast(ops.not_equal(target, PAD), "float32")
        found = token_losses(y_pred["logits"], target, self.settings["label_smoothing"])
        count = ops.sum(real)
        self.plain_loss.update_state(ops.sum(found.plain * real) / ops.maximum(count, 1.0), count)
        hits = ops.sum(found.hit * real)
        self.accuracy.update_state(hits / ops.maximum(count, 1.0), count)
        loss = sum(self.losses, ops.sum(found.smoothed * real) / ops.maximum(count, 1.0))
        if self.settings["penalties"] and training:
            loss = loss + penalty(
                self.settings["penalties"], y_pred["alignment"], y_pred["mask"], real
            )
        if self.reinforce is not None and training:
            loss = loss + self.reinforce(
                -found.plain, y_pred["alignment"], y_pred["distribution"], real, training=training
            )
        return loss

    def measures(self, results: Mapping[str, float]) -> dict[str, float]:
        """``loss``, in nats a target piece, ``perplexity`` and ``accuracy``."""
        found = super().measures(results)
        perplexity = math.exp(min(found["loss"], 50.0))
        return {**found, "perplexity": perplexity, "accuracy": float(results["accuracy"])}

    def search(self, source: Any, search: Search, limits: Any, **options: Any) -> Hypotheses:
        """Decodes ``source`` ``[batch, source]``.

        Args:
            source: the pieces, EOS and padding behind.
            search: how to look for the target.
            limits: the longest targets, ``[batch]``, EOS counted.
            options: what else the search is told of these rows (see ``Search``).
        """
        memory = self.remember(source)
        state = self.decoder.start(memory, longest=ops.max(limits, initial=1))
        return search(self.decoder.step, state, limits, **options)

    def score(self, source: Any, target: Any) -> Any:
        """The log-probability of given targets, ``[batch]``, natural logarithm, EOS included."""
        return ops.sum(self.piece_scores(source, target), axis=-1)

    def piece_scores(self, source: Any, target: Any) -> Any:
        """Of each piece, given those before it: ``[batch, target]``, 0 where there is padding."""
        return self.forced(source, target)[0]

    def forced(self, source: Any, target: Any) -> tuple[Any, Any]:
        """What ``piece_scores`` gives, and where the model looked for each piece.

        The weights are ``[batch, target, source]``, float32, and 0 where the target is padding.
        """
        logits, alignments = self.teacher_force(source, target)
        real = ops.cast(ops.not_equal(target, PAD), "float32")
        scores = -token_losses(logits, target).plain * real
        return scores, ops.cast(alignments, "float32") * real[:, :, None]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "encoder": layer_config(self.encoder),
            "decoder": layer_config(self.decoder),
            **self.settings,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Seq2Seq:
        nested = {name: layer_from_config(config[name]) for name in ("encoder", "decoder")}
        return cls(**{**config, **nested})


def shift(target: Any) -> Any:
    """What the decoder reads: BOS, then the target without its last column; EOS becomes PAD."""
    before = ops.where(ops.equal(target, EOS), PAD, target)[:, :-1]
    return ops.concatenate([ops.full_like(target[:, :1], BOS), before], axis=1)
