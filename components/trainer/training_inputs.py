"""The inputs of a training: the task's network, the tokenizers and the splits."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.components.common.sentencepiece_models import (
    create_processors,
    read_sentencepiece_models,
)
from regard.components.settings.trainer import NODE, TrainerConfig, TrainingData
from regard.components.trainer.backends import current_backend
from regard.components.trainer.batches import Batches
from regard.components.trainer.device_group import DeviceGroup
from regard.components.trainer.epoch_plan import COARSE_GROWTH, GROWTH
from regard.components.trainer.subword_sampling import SubwordSampling
from regard.components.trainer.text_noise import TextNoise
from regard.core import events
from regard.core.errors import UserError
from regard.core.text_noise import noisy_features
from regard.models import tasks
from regard.models.protected_spans import CLOSE, SLOTS, protection_symbols, symbol
from regard.models.settings.protect import ProtectConfig
from regard.models.tasks.network import Network, Processors

_SAMPLED_ROWS = 10_000  # in which protected spans are counted


@dataclasses.dataclass(frozen=True)
class TrainingInputs:
    """What a training reads.

    Attributes:
        network: what the task trains.
        processors: the tokenizer of each text feature.
        sentencepiece_models: the same, serialized.
        vocabulary_sizes: one per text feature.
        train: the train split, shared by the devices.
        eval: the eval split.
        rows: the counts of each split: usable, incomplete and too long rows.
    """

    network: Network
    processors: Processors
    sentencepiece_models: Mapping[str, bytes]
    vocabulary_sizes: Mapping[str, int]
    train: Batches
    eval: Batches
    rows: Mapping[str, Mapping[str, int]]

    def with_batch_tokens(self, batch_tokens: int) -> "TrainingInputs":
        """Return the same inputs in batches of another size."""
        return dataclasses.replace(
            self,
            train=self.train.with_batch_tokens(batch_tokens),
            eval=self.eval.with_batch_tokens(batch_tokens),
        )


def read_inputs(
    config: TrainerConfig,
    data: TrainingData,
    group: DeviceGroup | None,
    report: bool = True,
) -> TrainingInputs:
    """Read the tokenizers and the splits, and report the rows that are skipped.

    Args:
        config: the configuration.
        data: the rows.
        group: the devices that share each batch of the train split; None for a single device.
        report: whether to report the rows that are skipped, and those drawn by their tags.

    Raises:
        UserError: a split has no usable row.
    """
    training, network = config.training, tasks.get_network(config.task)
    features = network.description.text_features
    serialized = read_sentencepiece_models(f"{data.transform_graph}/tokenizer", features)
    processors = create_processors(serialized)
    sampling = None
    if training.subword_sampling:
        alpha = training.subword_sampling.alpha
        sampling = SubwordSampling(serialized, alpha, training.max_length, training.seed)
    noise = None
    if training.noise:
        models = {name: serialized[name] for name in noisy_features(network.description.features)}
        noise = TextNoise(models, training.noise, training.max_length, training.seed)
    backend = current_backend()
    compiles = backend.always_compiles
    make_batches = functools.partial(
        Batches,
        network=network,
        batch_tokens=0 if training.batch_tokens == "auto" else training.batch_tokens,
        max_length=training.max_length,
        seed=training.seed,
        fixed_shapes=training.jit_compile or compiles,
        row_multiple=backend.devices,
        growth=COARSE_GROWTH if compiles else GROWTH,
    )
    train_batches = make_batches(
        data.train_files,
        sharing=group.sharing if group else None,
        noise=noise,
        sampling=sampling,
        tag_temperature=config.tags.temperature if config.tags else 1.0,
    )
    eval_batches = make_batches(data.eval_files)
    rows = {"train": train_batches.count(), "eval": eval_batches.count()}
    for split, counts in rows.items():
        _check_rows(split, counts, training.max_length, report)
    if train_batches.tag_sampling and report:
        _report_tags(train_batches, processors[features[0]])
    if config.protect is not None and report:
        _report_spans(train_batches, processors[features[0]], config.protect)
    return TrainingInputs(
        network=network,
        processors=processors,
        sentencepiece_models=serialized,
        vocabulary_sizes={name: processor.vocab_size() for name, processor in processors.items()},
        train=train_batches,
        eval=eval_batches,
        rows=rows,
    )


def _check_rows(split: str, counts: Mapping[str, int], max_length: int, report: bool) -> None:
    """Raise a UserError if a split has no usable row; report the rows that are skipped."""
    if not counts["usable"]:
        raise UserError(
            f"The {split} split has no usable row: {counts['incomplete']} are incomplete (an empty "
            f"side, or an invalid reference), {counts['too_long']} are longer than {max_length} "
            "tokens.",
            where="training.max_length",
            remedy="Raise training.max_length, or add data.",
        )
    if report and (counts["incomplete"] or counts["too_long"]):
        text = (
            f"{split}: skipped {counts['too_long']} rows longer than {max_length} tokens and "
            f"{counts['incomplete']} incomplete rows"
        )
        events.emit("note", node=NODE, text=text)


def _report_spans(batches: Batches, processor: Any, protect: ProtectConfig) -> None:
    """Report how many rows have symbols for protected spans: without any, none is trained."""
    tokens = {processor.piece_to_id(text) for text in protection_symbols()}
    tags = {processor.piece_to_id(symbol(slot)) for slot in range(CLOSE, SLOTS)}
    rows = [set(row["source_ids"].tolist()) for row in batches.complete_rows(_SAMPLED_ROWS)]
    spans, pairs = (sum(bool(row & ids) for row in rows) for ids in (tokens, tags))
    text = f"{spans:,} of {len(rows):,} rows have protected spans, {pairs:,} pairs of tags"
    if spans and (pairs or not protect.has_markup or protect.by_attention):
        events.emit("note", node=NODE, text=text)
        return
    advice = "remove data.protect" if not spans else "set data.protect.placement to attention"
    text += f"; what no row has is not trained: {advice}, or add rows with the same spans on "
    events.emit("warning", node=NODE, text=f"{text}both sides")


def _report_tags(batches: Batches, processor: Any) -> None:
    """Report how often the rows of each tag are drawn, which the statistics do not show."""
    sampling: Any = batches.tag_sampling
    counts, expected = sampling.counts(np.flatnonzero(batches.buckets.usable(batches.lengths)))
    tags = {i: processor.id_to_piece(int(i))[1:] for i in np.flatnonzero(counts)}
    listed = ", ".join(f"{tag} {expected[i]:,.0f} of {counts[i]:,}" for i, tag in tags.items())
    events.emit("note", node=NODE, text=f"rows drawn in an epoch, by tag: {listed}")
