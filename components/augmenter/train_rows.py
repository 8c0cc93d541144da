"""The steps of an augmentation: files of examples in, changed files and a sentence out."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from regard.components.augmenter.model_pass import ModelPass
from regard.components.corpus_gen.example_writer import ExampleEncoder, ShardWriter
from regard.components.data.example_rows import read_records
from regard.components.data.images import Images
from regard.components.data.text_files import read_lines
from regard.components.settings import augmentation as sections
from regard.components.settings.trainer import StartingModel
from regard.core.characters import is_blank
from regard.core.errors import UserError
from regard.core.features import Feature

Paths = Sequence[str]
# The files that a step has written, and a sentence about it.
StepResult = tuple[list[str], str]
# What becomes of a record and its result.
Edit = Callable[[bytes, Any], list[bytes]]


@dataclasses.dataclass(frozen=True)
class TrainRows:
    """Changes the rows of a train split; each step is a method with the name of its section.

    Attributes:
        run: a function that returns the results of a pass for the records of files, see
            ``run_pass``.
        models: the models by their keys in the section ``augmentation``.
        folder: the folder for new files.
        features: the features of an example.
        texts: the files of ``data.monolingual``.
        encoding: the encoding of the texts, see ``read_lines``.
    """

    run: Callable[[ModelPass, Paths], Iterable[Any]]
    models: Mapping[str, StartingModel]
    folder: str
    features: Sequence[Feature]
    texts: Paths
    encoding: str | None

    def filter(self, paths: Paths, config: sections.FilterConfig) -> StepResult:
        """Keep the share of the pairs with the lowest dual conditional cross-entropy.

        Raises:
            UserError: no pair has a score of both models.
        """
        forward, reverse = self.models["filter.forward"], self.models["filter.reverse"]
        passes = (
            self._tagged(
                ModelPass(forward, {"source": "source", "target": "target"}, is_score=True),
                config.forward_tag,
            ),
            self._tagged(
                ModelPass(reverse, {"source": "target", "target": "source"}, is_score=True),
                config.reverse_tag,
            ),
        )
        entropies = [np.array(list(self.run(model_pass, paths))) for model_pass in passes]
        scores = dual_cross_entropy(*entropies)
        is_kept = keep_best(scores, config.keep)

        def edit(record: bytes, keep: bool) -> list[bytes]:
            return [record] if keep else []

        shards = self._rewrite("filter", paths, is_kept.tolist(), edit)
        count, rows, worst = is_kept.sum(), len(scores), scores[is_kept].max()
        text = f"{count:,} of {rows:,} pairs ({count / rows:.1%}) kept by {passes[0].label} and "
        return shards, f"{text}{passes[1].label}, with scores up to {worst:.2f}"

    def distillation(self, paths: Paths, config: sections.DistillationConfig) -> StepResult:
        """Replace the targets by the outputs of the teacher."""
        teacher = ModelPass(self.models["distillation.teacher"], {"source": "source"})
        teacher = self._tagged(teacher, config.teacher_tag)
        outputs = self.run(teacher, paths)

        def edit(record: bytes, text: str | None) -> list[bytes]:
            if text is None:
                return [record]
            changed = _replace(record, "target", text)
            return [record, changed] if config.keep_original else [changed]

        shards = self._rewrite("distillation", paths, outputs, edit)
        text = f"{_count(outputs)} targets translated by {teacher.label}"
        if config.keep_original:
            text += ", in addition to the originals"
        return shards, text

    def back_translation(self, paths: Paths, config: sections.BackTranslationConfig) -> StepResult:
        """Add pairs of monolingual texts and their translations, but no damaged texts.

        Raises:
            UnreadableFile: a file of texts cannot be read.
        """
        rows = sum(1 for _ in itertools.chain.from_iterable(map(read_records, paths)))
        limit = math.ceil(config.ratio * rows)
        writer = ShardWriter(os.path.join(self.folder, "texts"))
        for file in self.texts:
            encode = ExampleEncoder(self.features, file, Images(""))
            lines = enumerate(read_lines(file, encoding=self.encoding), 1)
            # U+FFFD stands for what cannot be decoded.
            texts = (
                (line, text) for line, text in lines if not is_blank(text) and "\ufffd" not in text
            )
            for line, text in itertools.islice(texts, limit):
                values = [text if feature.name == "target" else None for feature in self.features]
                writer.write(encode(line, values))
                limit -= 1
        examples, model = _close(writer), self.models["back_translation.model"]
        seed = config.seed if config.search == "sampling" else None
        translation = ModelPass(model, {"source": "target"}, seed=seed, tag=config.model_tag)
        outputs = self.run(translation, examples)

        def edit(record: bytes, text: str | None) -> list[bytes]:
            if text is None:
                return []
            tagged = f"{config.tag or ''} {text}".lstrip()
            return [_replace(record, "source", tagged)]

        shards = self._rewrite("back-translation", examples, outputs, edit)
        text = f"{_count(outputs)} monolingual texts translated by {translation.label}"
        return [*paths, *shards], f"{text} ({config.search}) and added to {rows:,} pairs"

    def _tagged(self, model_pass: ModelPass, tag: str | None) -> ModelPass:
        """Return a pass with a tag, or with that of each row if the rows have tags."""
        feature = next((feature.name for feature in self.features if feature.tags), None)
        return dataclasses.replace(model_pass, tag=tag, tag_feature=None if tag else feature)

    def _rewrite(self, name: str, paths: Paths, results: Iterable[Any], edit: Edit) -> list[str]:
        """Write new files from the records of files and their results."""
        writer = ShardWriter(os.path.join(self.folder, name))
        records = itertools.chain.from_iterable(map(read_records, paths))
        for record, result in zip(records, results, strict=True):
            for changed in edit(record, result):
                writer.write(changed)
        return _close(writer)


def _close(writer: ShardWriter) -> list[str]:
    writer.close()
    return [f"{writer.stem}-{shard:05d}.gz" for shard in range(writer.shards)]


def _replace(record: bytes, feature: str, text: str) -> bytes:
    """Return a serialized example with another text; the same bytes for the same row."""
    example = tf.train.Example.FromString(record)
    example.features.feature[feature].bytes_list.value[:] = [text.encode()]
    return example.SerializeToString(deterministic=True)


def _count(outputs: Iterable[Any]) -> str:
    has_output = [output is not None for output in outputs]
    return f"{has_output.count(True):,} of {len(has_output):,}"


def dual_cross_entropy(forward: np.ndarray, reverse: np.ndarray) -> np.ndarray:
    """Return the dual conditional cross-entropy of pairs, ``[rows]``; lower is better.

    Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of Noisy Parallel Corpora",
    section 2.1.

    Args:
        forward: cross-entropies per token of targets given sources, ``[rows]``.
        reverse: cross-entropies per token of sources given targets, ``[rows]``.
    """
    is_finite = np.isfinite(forward) & np.isfinite(reverse)
    forward, reverse = np.where(is_finite, forward, 0), np.where(is_finite, reverse, 0)
    return np.where(is_finite, np.abs(forward - reverse) + (forward + reverse) / 2, np.inf)


def keep_best(scores: np.ndarray, share: float) -> np.ndarray:
    """Return whether each row is among the share with the lowest scores; the first of equal ones.

    Rows without a finite score are never kept.

    Raises:
        UserError: no row has a score.
    """
    is_kept = np.zeros(len(scores), bool)
    count = math.ceil(round(share * len(scores), 6))  # 0.07 * 100 is more than 7
    is_kept[np.argsort(scores, kind="stable")[:count]] = True
    is_kept &= np.isfinite(scores)
    if not is_kept.any():
        raise UserError("The models give no pair a score.", "augmentation.filter", "Remove it.")
    return is_kept
