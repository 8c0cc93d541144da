"""Sequence to sequence: an encoder, a decoder, a teacher-forced loss and a search."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from regard.models.losses import PENALTIES, guided_alignment, penalty, token_losses
from regard.models.reinforce import Reinforce
from regard.models.scheduled_sampling import ScheduledSampling
from regard.models.search import Hypotheses, Search
from regard.models.search.base import first_state, longest_limit
from regard.models.serialization import check_name, constructor_arguments, register
from regard.models.tensors import Memory, Tensor
from regard.models.trainable_model import TrainableModel
from regard.models.vocabulary import BOS, EOS, PAD


@register
class Seq2Seq(TrainableModel):
    """Map source ids to target ids.

    Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks", with the
    attention of the decoder.

    Args:
        encoder: a layer from ids ``[batch, source]`` to a memory (``regard.models.decoders.base``).
        decoder: a ``Decoder``.
        label_smoothing: the share of probability that the loss spreads over the vocabulary.
        share_embeddings: the decoder uses the encoder's embedding matrix (Press and Wolf 2017,
            "Using the Output Embedding to Improve Language Models", §3); both sides must have one
            vocabulary.
        reinforce: the arguments of ``Reinforce``, for decoders with sampled alignments.
        penalties: the weight of each of ``PENALTIES`` in the training loss; 0 disables it.
        guided_alignment: the ``weight`` of the loss of that name, and for a Transformer the
            ``layer`` and ``head`` whose attention it supervises, see ``TransformerDecoder``.
        scheduled_sampling: the arguments of ``ScheduledSampling``; None for teacher forcing.
        first_tokens: pairs of a source id and a target id: if a source begins with the one, the
            decoder reads the other after BOS and before the output (Fan et al. 2021, "Beyond
            English-Centric Multilingual Machine Translation", §2.2). It is no part of the output,
            its length, and its probability.

    ``call`` takes a dictionary of ``source`` ``[batch, source]`` and ``target`` ``[batch,
    target]`` (tokens, then EOS, then PAD) and returns a dictionary of ``logits`` ``[batch, target,
    vocabulary]``; for a stochastic decoder also ``alignment`` and the ``distribution`` from which
    it was sampled, ``[batch, target, source]``; with penalties ``alignment`` and the memory's
    ``mask``; with guided alignment ``alignment``, and training needs the input ``links``, as in
    the loss. ``fit`` needs no labels: the target is its own label.

    Raises:
        ValueError: a penalty is unknown.
    """

    parts = ("encoder", "decoder")

    def __init__(
        self,
        encoder: keras.layers.Layer,
        decoder: keras.layers.Layer,
        label_smoothing: float = 0.0,
        share_embeddings: bool = False,
        reinforce: dict[str, Any] | None = None,
        penalties: dict[str, float] | None = None,
        guided_alignment: dict[str, Any] | None = None,
        scheduled_sampling: dict[str, Any] | None = None,
        first_tokens: Sequence[tuple[int, int]] = (),
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        reinforce = dict(reinforce or {})
        penalties = {name: x for name, x in (penalties or {}).items() if x}
        guided_alignment = dict(guided_alignment or {})
        scheduled_sampling = dict(scheduled_sampling or {})
        first_tokens = [(int(source), int(target)) for source, target in first_tokens]
        self.settings = constructor_arguments(locals(), exclude=self.parts)
        for name in penalties:
            check_name("penalty", PENALTIES, name)
        self.encoder = encoder
        self.decoder = decoder
        if share_embeddings:
            decoder.embedding.share(encoder.embedding)
        self.reinforce = (
            Reinforce(**self.settings["reinforce"], name="reinforce")
            if decoder.stochastic
            else None
        )
        self.sampling = ScheduledSampling(**scheduled_sampling) if scheduled_sampling else None
        self.first_tokens = np.array(first_tokens, np.int32)
        self.accuracy = keras.metrics.Mean(name="accuracy")

    def build(self, inputs_shape: Any = None) -> None:
        for layer in (self.encoder, self.decoder, self.reinforce):
            if layer is not None and not layer.built:  # from_config builds loaded layers
                layer.build()

    def call(self, inputs: dict[str, Tensor], training: bool = False) -> dict[str, Tensor]:
        memory = self.encode(inputs["source"], training=training)
        previous = self.decoder_inputs(inputs["source"], inputs["target"])
        if self.sampling is not None and training:
            previous = self.sampling(previous, memory, decoder=self.decoder)
        outputs = {"mask": memory["mask"]} if self.settings["penalties"] else {}
        if self.reinforce is not None:
            logits, alignment, distribution = map(
                self._without_first,
                self.decoder.unroll_with_distribution(previous, memory, training=training),
            )
            sampled = {"alignment": alignment, "distribution": distribution}
            return {**outputs, "logits": logits, **sampled}
        guidance = self.settings["guided_alignment"]
        head = {name: guidance[name] for name in ("layer", "head") if guidance.get(name)}
        logits, alignment = map(
            self._without_first,
            self.decoder.unroll(previous, memory, training=training, **head),
        )
        outputs |= {"alignment": alignment} if outputs or guidance else {}
        return {**outputs, "logits": logits}

    def encode(self, source: Tensor, training: bool = False) -> Memory:
        """Return the memory of a source ``[batch, source]`` with everything the decoder needs."""
        memory = self.encoder(source, training=training)
        return {**memory, "ids": source} if self.decoder.copies else memory

    def teacher_force(
        self, source: Tensor, target: Tensor, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the logits ``[batch, target, vocabulary]`` and alignments of given targets."""
        memory = self.encode(source, training=training)
        inputs = self.decoder_inputs(source, target)
        logits, alignments = self.decoder.unroll(inputs, memory, training=training)
        return self._without_first(logits), self._without_first(alignments)

    def decoder_inputs(self, source: Tensor, target: Tensor) -> Tensor:
        """Return what the decoder reads under teacher forcing.

        Args:
            source: ``[batch, source]``.
            target: ``[batch, target]``, as in ``call``.

        Returns:
            BOS, the first token of the source if there are ``first_tokens``, and the target
            without its last column and without EOS.
        """
        previous = shift(target)
        if not len(self.first_tokens):
            return previous
        first = self._first_token(source)[:, None]
        return ops.concatenate([previous[:, :1], first, previous[:, 1:]], axis=1)

    def _first_token(self, source: Tensor) -> Tensor:
        """Return the first token of each source, ``[batch]``; by default that of the first pair."""
        names_it = ops.equal(source[:, :1], self.first_tokens[None, :, 0])
        pair = ops.argmax(ops.cast(names_it, "int32"), axis=1)
        return ops.take(ops.convert_to_tensor(self.first_tokens[:, 1]), pair, axis=0)

    def _without_first(self, outputs: Tensor) -> Tensor:
        """Return outputs ``[batch, target, ...]`` without that whose next token is the first."""
        return outputs[:, 1:] if len(self.first_tokens) else outputs

    def heads(self, source: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the attention weights of all heads of all layers; empty without a Transformer.

        Args:
            source: ``[batch, source]``.
            target: ``[batch, target]``, as in ``call``.

        Returns:
            If available, ``source`` ``[batch, layers, heads, source, source]``, the encoder's
            self-attention, and the decoder's ``cross`` and ``target`` (see ``Decoder.heads``).
        """
        weights = {}
        if "source" in self.head_names:
            _, weights["source"] = self.encoder.encode_with_attention(source)
        inputs = self.decoder_inputs(source, target)
        weights |= self.decoder.heads(inputs, self.encode(source))
        if len(self.first_tokens):
            # Both tokens before an output are its beginning.
            own = weights["target"][..., 1:, :]
            begin = ops.sum(own[..., :2], axis=-1, keepdims=True)
            weights["target"] = ops.concatenate([begin, own[..., 2:]], axis=-1)
            weights["cross"] = weights["cross"][..., 1:, :]
        return weights

    @property
    def head_names(self) -> tuple[str, ...]:
        """The keys of the result of ``heads``."""
        return (*getattr(self.encoder, "head_names", ()), *self.decoder.head_names)

    def batch_loss(self, inputs: Any, outputs: Any, training: bool) -> Tensor:
        """Return the mean loss per target token in nats, and update the running means."""
        target = inputs["target"]
        mask = ops.cast(ops.not_equal(target, PAD), "float32")
        vocabulary = self.decoder.embedding.vocabulary if self.decoder.copies else None
        losses = token_losses(
            outputs["logits"], target, self.settings["label_smoothing"], vocabulary
        )
        count = ops.sum(mask)
        self.loss_mean.update_state(ops.sum(losses.plain * mask) / ops.maximum(count, 1.0), count)
        correct = ops.sum(losses.correct * mask)
        self.accuracy.update_state(correct / ops.maximum(count, 1.0), count)
        loss = ops.sum(losses.smoothed * mask) / ops.maximum(count, 1.0)
        if self.settings["penalties"] and training:
            loss = loss + penalty(
                self.settings["penalties"], outputs["alignment"], outputs["mask"], mask
            )
        if (guidance := self.settings["guided_alignment"]) and training:
            alignment_loss = guided_alignment(outputs["alignment"], inputs["links"], mask)
            loss = loss + guidance["weight"] * alignment_loss
        if self.reinforce is not None and training:
            loss = loss + self.reinforce(
                -losses.plain,
                outputs["alignment"],
                outputs["distribution"],
                mask,
                training=training,
            )
        return loss

    def evaluation_metrics(self, results: Mapping[str, float]) -> dict[str, float]:
        """Return ``loss`` in nats per target token, ``perplexity`` and ``accuracy``."""
        metrics = super().evaluation_metrics(results)
        perplexity = math.exp(min(metrics["loss"], 50.0))
        return {**metrics, "perplexity": perplexity, "accuracy": float(results["accuracy"])}

    def search(
        self,
        source: Tensor,
        search: Search,
        limits: Tensor,
        longest: int | None = None,
        **options: Any,
    ) -> Hypotheses:
        """Decode ``source`` ``[batch, source]``.

        Args:
            source: the tokens, EOS and padding.
            search: the search algorithm.
            limits: the maximum lengths of the targets, ``[batch]``, including EOS.
            longest: at least the largest limit, see ``Search.__call__``.
            options: further arguments of ``Search.__call__``.
        """
        memory = self.encode(source)
        # Copied once: a loop in a graph would read the variables at every step.
        values = [(weight, ops.copy(weight)) for weight in self.decoder.weights]
        with keras.StatelessScope(values):
            size = longest_limit(limits) if longest is None else longest
            if len(self.first_tokens):
                state = self.decoder.start(memory, size + 1, search.beam_width)
                state = first_state(self.decoder.step, state, limits, search.beam_width)
                options["first"] = self._first_token(source)
            else:
                state = self.decoder.start(memory, size, search.beam_width)
            state["memory"] = {**state["memory"], **self.decoder.prepare_output()}
            return search(self.decoder.step, state, limits, longest=longest, **options)

    def score(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the log-probabilities of given targets, ``[batch]`` in nats, including EOS."""
        return ops.sum(self.score_with_alignment(source, target)[0], axis=-1)

    def score_with_alignment(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probability and the alignment of each token, both 0 for padding.

        Log-probabilities are ``[batch, target]``, alignments ``[batch, target, source]``, float32.
        """
        logits, alignments = self.teacher_force(source, target)
        mask = ops.cast(ops.not_equal(target, PAD), "float32")
        scores = -token_losses(logits, target).plain * mask
        return scores, ops.cast(alignments, "float32") * mask[:, :, None]


def shift(target: Tensor) -> Tensor:
    """Return the decoder's inputs: BOS, then the target without its last column and without EOS."""
    previous = ops.where(ops.equal(target, EOS), PAD, target)[:, :-1]
    return ops.concatenate([ops.full_like(target[:, :1], BOS), previous], axis=1)
