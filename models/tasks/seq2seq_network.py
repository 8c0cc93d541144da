"""Networks of sequence-to-sequence models: the decoder is the same whatever its source is."""

import functools
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.core.ragged import Ragged
from regard.models.decoders import DECODERS
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.greedy_decoding import GreedyDecoder, OutputLimits, texts_of_ids
from regard.models.tasks.network import Network, Processors, Rows, dtype_policy
from regard.models.vocabulary import EOS, PAD


class Seq2SeqNetwork(Network):
    """The network of a task whose rows have the ids of the reference as ``<reference>_ids``."""

    @property
    def target(self) -> str:
        """The name of the reference."""
        return self.description.reference.name

    def model_inputs(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return ``source``, and ``target`` as int32 with EOS, ``[batch, target]``."""
        target = append_eos(rows[f"{self.target}_ids"])
        return {"source": self.source_input(rows), "target": target}

    @abstractmethod
    def source_input(self, rows: Rows) -> np.ndarray:
        """Return the input of the encoder for training rows."""


class TextOutputNetwork(Seq2SeqNetwork):
    """The network of a task whose outputs are texts; a row may have several references."""

    def select_references(self, rows: Rows, numbers: np.ndarray) -> Rows:
        """Return the rows with one text of each in ``<reference>_ids``."""
        others = dict(rows)
        lengths = others.pop(f"{self.target}_lengths")
        name = f"{self.target}_ids"
        texts = Ragged.from_lengths(others[name].values, lengths.values)
        return {**others, name: texts.take(lengths.splits[:-1] + numbers)}

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
            first_tokens=getattr(model, "first_tokens", ()),
            scheduled_sampling={**sampling.to_kwargs(), **steps} if sampling else None,
            dtype=dtype_policy(training),
        )
        seq2seq.build()
        return seq2seq

    def batch_decoder(
        self, model: Seq2Seq, processors: Processors, settings: Any, search: SearchLimits
    ) -> GreedyDecoder:
        to_texts = functools.partial(texts_of_ids, processors[self.target])
        return GreedyDecoder(model, self.output_limits(search), to_texts)

    @abstractmethod
    def output_limits(self, search: SearchLimits) -> OutputLimits:
        """Return the maximum lengths of outputs by the section ``search``."""

    def vocab_weights(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        return [(weight, axis, self.target) for weight, axis in model.decoder.vocab_weights]


def append_eos(ids: Ragged) -> np.ndarray:
    """Return ids as int32 with EOS after each row, padded to ``[rows, longest + 1]``."""
    dense = ids.to_dense(padding=PAD, extra=1).astype(np.int32)
    dense[np.arange(len(ids)), ids.lengths] = EOS
    return dense
