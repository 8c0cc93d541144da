"""Tasks of sequence-to-sequence models: the decoder is the same whatever its source is."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.decoders import DECODERS
from regard.models.search import GreedySearch
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.base import Columns, DecodeFn, Task, Tokenizers, dtype_policy, to_ragged
from regard.models.tasks.copy_tokenizer import detokenize
from regard.models.tasks.served_model import with_signature
from regard.models.vocabulary import EOS, PAD


class Seq2SeqTask(Task):
    """A task whose transformed rows have the ids of the reference as ``<reference>_ids``."""

    @property
    def target(self) -> str:
        """The name of the reference."""
        return self.description.reference.name

    def model_inputs(self, features: Columns) -> dict[str, tf.Tensor]:
        """Return ``source``, and ``target`` as int32 with EOS, ``[batch, target]``."""
        target = append_eos(features[f"{self.target}_ids"])
        return {"source": self.source_input(features), "target": target}

    @abstractmethod
    def source_input(self, features: Columns) -> tf.Tensor:
        """Return the input of the encoder for a batch of training rows."""

    @abstractmethod
    def source_spec(self, model: Seq2Seq) -> tf.TensorSpec:
        """Return the shape and type of a batch of ``source``."""

    @abstractmethod
    def max_lengths(self, source: tf.Tensor, search: Any) -> tf.Tensor:
        """Return the maximum lengths of the outputs without EOS, int32 ``[batch]``."""

    @abstractmethod
    def decode_ids(self, ids: tf.Tensor, tokenizers: Tokenizers) -> list[Any]:
        """Return padded ids ``[batch, length]`` as outputs."""

    def decode_fn(
        self, model: Seq2Seq, tokenizers: Tokenizers, settings: Any, search: Any
    ) -> DecodeFn:
        greedy = GreedySearch()

        @with_signature([self.source_spec(model)])
        def run_search(source: tf.Tensor) -> tf.Tensor:
            return model.search(source, greedy, self.max_lengths(source, search) + 1).ids[:, 0]

        def decode(batch: Mapping[str, tf.Tensor]) -> tuple[list[Any], list[list[Any]]]:
            references = self.decode_ids(batch["target"], tokenizers)
            outputs = self.decode_ids(run_search(batch["source"]), tokenizers)
            return outputs, [[reference] for reference in references]

        return decode


class TextOutputTask(Seq2SeqTask):
    """A task whose outputs are texts; a row may have several references."""

    def target_features(self, inputs: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        """Tokenize all references of each row.

        Returns:
            ``<reference>_ids`` ``[batch, (tokens of all texts)]`` and ``<reference>_lengths``
            ``[batch, (texts)]``, ragged int64.
        """
        texts = to_ragged(inputs[self.target])
        tokens = tf.cast(tokenizers[self.target].tokenize(texts.values), tf.int64)
        # The rows' boundaries among all texts, and with them among all tokens.
        splits = texts.row_splits
        ends = tf.gather(tokens.row_splits, splits)
        return {
            f"{self.target}_ids": tf.RaggedTensor.from_row_splits(tokens.values, ends),
            f"{self.target}_lengths": tf.RaggedTensor.from_row_splits(tokens.row_lengths(), splits),
        }

    def text_lengths(self, features: Columns, sources: tf.Tensor | int = 1) -> tf.RaggedTensor:
        """Return the lengths of training rows by their texts, including EOS.

        Args:
            features: A batch of transformed rows.
            sources: The lengths of the sources, ``[batch]``, of which the longer side counts.
        """
        targets = features[f"{self.target}_lengths"]
        rows = targets.value_rowids()
        sources = tf.gather(tf.broadcast_to(sources, [targets.nrows()]), rows)
        longest = tf.maximum(tf.cast(sources, tf.int64), targets.values) + 1
        return targets.with_values(tf.where((sources > 0) & (targets.values > 0), longest, 0))

    def select_references(self, features: Columns, numbers: tf.Tensor) -> dict[str, Any]:
        """Return the features with one text of each row in ``<reference>_ids``."""
        others = dict(features)
        lengths = others.pop(f"{self.target}_lengths")
        name = f"{self.target}_ids"
        texts = tf.RaggedTensor.from_row_lengths(others[name].values, lengths.values)
        return {**others, name: tf.gather(texts, lengths.row_starts() + numbers)}

    def build_seq2seq(
        self,
        encoder: Any,
        model: Any,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
        scale: bool = True,
    ) -> Seq2Seq:
        """Build the model of an encoder.

        Args:
            encoder: The encoder.
            model: The section ``model``.
            training: The section ``training``.
            vocabulary_sizes: The vocabulary size of each text feature.
            scale: Whether the decoder scales its embeddings.
        """
        decoder = DECODERS[model.decoder.type](
            vocabulary_sizes[self.target],
            memory_depth=encoder.depth,
            final_depth=encoder.final_depth,
            attention=model.attention.to_kwargs() if model.attention else None,
            tied=model.tie_embeddings != "none",
            scale=scale,
            embedding=model.embedding,
            dropout=model.dropout,
            dtype=dtype_policy(training),
            **model.decoder.to_kwargs(),
        )
        guidance, sampling = training.guided_alignment, training.scheduled_sampling
        steps = {"batches_per_step": training.gradient_accumulation_steps}
        seq2seq = Seq2Seq(
            encoder,
            decoder,
            label_smoothing=training.label_smoothing,
            share_embeddings=model.tie_embeddings == "all",
            reinforce=training.reinforce.to_kwargs(),
            penalties=training.penalties.to_kwargs(),
            guided_alignment=guidance.to_kwargs() if guidance else None,
            scheduled_sampling={**sampling.to_kwargs(), **steps} if sampling else None,
            dtype=dtype_policy(training),
        )
        seq2seq.build()
        return seq2seq

    def vocab_weights(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        return [(weight, axis, self.target) for weight, axis in model.decoder.vocab_weights]

    def decode_ids(self, ids: tf.Tensor, tokenizers: Tokenizers) -> list[str]:
        tokens = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
        texts = detokenize(tokenizers[self.target], tokens)
        return [text.decode("utf-8") for text in texts.numpy()]


def append_eos(ids: tf.RaggedTensor) -> tf.Tensor:
    """Return ids ``[batch, (length)]`` as int32 with EOS, padded to ``[batch, width + 1]``."""
    padded = tf.pad(tf.cast(ids, tf.int32).to_tensor(PAD), [[0, 0], [0, 1]])
    # One more addition is cheaper than the concatenation of ragged tensors.
    return padded + EOS * tf.one_hot(ids.row_lengths(), tf.shape(padded)[1], dtype=tf.int32)
