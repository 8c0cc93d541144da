"""The steps of an augmentation: files of examples in, changed files and a sentence out."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf

from regard.components.augmenter.model_pass import ModelPass, StoredResults
from regard.components.common.errors import UserError
from regard.components.corpus_gen.example_writer import ExampleEncoder, ShardWriter
from regard.components.data.example_rows import read_records
from regard.components.data.images import Images
from regard.components.data.text_files import read_lines
from regard.components.settings.augmentation import (
    BackTranslationConfig,
    DistillationConfig,
    FilterConfig,
)
from regard.components.settings.trainer import StartingModel
from regard.models.tasks.description import Feature

# A file is rewritten to one file, whatever its size.
_NO_LIMIT = 1 << 60
# The files that a step has written, and a sentence about it.
StepResult = tuple[list[str], str]


@dataclasses.dataclass(frozen=True)
class ShardEdit:
    """The rewriting of one file of examples.

    Attributes:
        source: the file.
        stem: the beginning of the path of the new file.
        results: for each record a text that replaces a feature, or whether the record is kept.
        feature: the feature.
        prefix: the beginning of every replaced text.
        default: the result of a record whose result is None.
        keep_original: whether a record whose text is replaced is kept as well.
    """

    source: str
    stem: str
    results: Iterable[Any]
    feature: str = ""
    prefix: str = ""
    default: bool = False
    keep_original: bool = False

    def write(self) -> None:
        """Write the new file."""
        writer = ShardWriter(self.stem, _NO_LIMIT, _NO_LIMIT)
        for record, result in zip(read_records(self.source), self.results, strict=True):
            text = self.default if result is None else result
            if text is True or (text and self.keep_original):
                writer.write(record)
            if isinstance(text, str):
                example = tf.train.Example.FromString(record)
                texts = example.features.feature[self.feature].bytes_list
                texts.value[:] = [f"{self.prefix}{text}".encode()]
                writer.write(example.SerializeToString(deterministic=True))
        writer.close()


@dataclasses.dataclass(frozen=True)
class TrainRows:
    """Changes the rows of a train split; each step is a method with the name of its section.

    Attributes:
        make_pipeline: returns an empty Beam pipeline.
        run: runs a pass over files, see ``run_pass``.
        models: by their keys in the section ``augmentation``.
        folder: for new files.
        features: the features of an example.
        texts: the files of ``data.monolingual``.
    """

    make_pipeline: Callable[[], beam.Pipeline]
    run: Callable[[ModelPass, Sequence[str]], dict[str, StoredResults]]
    models: Mapping[str, StartingModel]
    folder: str
    features: Sequence[Feature]
    texts: Sequence[str]

    def filter(self, paths: Sequence[str], config: FilterConfig) -> StepResult:
        """Keep the share of the pairs with the lowest dual conditional cross-entropy.

        Raises:
            UserError: no pair has a score of both models.
        """
        forward, reverse = self.models["filter.forward"], self.models["filter.reverse"]
        passes = (
            ModelPass(forward, {"source": "source", "target": "target"}, is_score=True),
            ModelPass(reverse, {"source": "target", "target": "source"}, is_score=True),
        )
        results = [self.run(one, paths) for one in passes]
        entropies = [np.array([x for path in paths for x in one[path]]) for one in results]
        scores = dual_cross_entropy(*entropies)
        is_kept, first, edits = keep_best(scores, config.keep), 0, []
        for i, path in enumerate(paths):
            mask = is_kept[first : first + sum(part.rows for part in results[0][path].parts)]
            first += len(mask)
            if mask.any():
                edits.append(ShardEdit(path, self._stem("filter", i), mask.tolist()))
        kept_rows, rows = int(is_kept.sum()), len(scores)
        text = f"{kept_rows:,} of {rows:,} pairs ({kept_rows / rows:.1%}) kept by {forward.model} "
        text += f"and {reverse.model}, {rows - kept_rows:,} dropped; the worst score of a kept one "
        return self._rewrite(edits), f"{text}is {scores[is_kept].max():.2f}"

    def distillation(self, paths: Sequence[str], config: DistillationConfig) -> StepResult:
        """Replace the targets by the outputs of the teacher."""
        teacher, added = self.models["distillation.teacher"], config.keep_original
        results = self.run(ModelPass(teacher, {"source": "source"}), paths)
        edits = [
            ShardEdit(
                *(path, self._stem("distillation", i), texts, "target"),
                default=True,
                keep_original=added,
            )
            for i, (path, texts) in enumerate(results.items())
        ]
        missing, rows = _count_missing(results.values())
        text = f"{rows - missing:,} of {rows:,} targets translated by {teacher.model}"
        text += " and added to the originals" if added else ""
        text += f"; {missing:,} without a usable output stay as they are" if missing else ""
        return self._rewrite(edits), text

    def back_translation(self, paths: Sequence[str], config: BackTranslationConfig) -> StepResult:
        """Add pairs of monolingual texts and their translations.

        Raises:
            UnreadableFile: a file of texts cannot be read.
        """
        model, rows = self.models["back_translation.model"], sum(map(_count_records, paths))
        limit, examples = math.ceil(config.ratio * rows), list[str]()
        for i, file in enumerate(self.texts):
            writer = ShardWriter(stem := self._stem("texts", i))
            encode = ExampleEncoder(self.features, file, Images(""))
            lines = ((n, text) for n, text in enumerate(read_lines(file), 1) if text.strip())
            for line, text in islice(lines, limit):
                values = [text if feature.name == "target" else None for feature in self.features]
                writer.write(encode(line, values))
                limit -= 1
            writer.close()
            examples += [f"{stem}-{shard:05d}.gz" for shard in range(writer.shards)]
        seed = config.seed if config.search == "sampling" else None
        results = self.run(ModelPass(model, {"source": "target"}, seed=seed), examples)
        prefix = f"{config.tag} " if config.tag else ""
        edits = [
            ShardEdit(path, self._stem("back-translation", i), texts, "source", prefix)
            for i, (path, texts) in enumerate(results.items())
            if any(texts)
        ]
        missing, count = _count_missing(results.values())
        text = f"{count - missing:,} pairs added to {rows:,}: texts of data.monolingual, translated"
        text += f" by {model.model} ({config.search})"
        text += f"; {missing:,} without a usable output left out" if missing else ""
        return [*paths, *self._rewrite(edits)], text

    def _rewrite(self, edits: Sequence[ShardEdit]) -> list[str]:
        with self.make_pipeline() as pipeline:
            shards = pipeline | beam.Create(edits, reshuffle=len(edits) > 1)
            _ = shards | beam.Map(ShardEdit.write)
        return [f"{edit.stem}-00000.gz" for edit in edits]

    def _stem(self, step: str, number: int) -> str:
        return os.path.join(self.folder, f"{step}-{number:05d}")


def _count_records(path: str) -> int:
    return sum(1 for _ in read_records(path))


def _count_missing(results: Iterable[Iterable[Any]]) -> tuple[int, int]:
    """Return how many results are None, and how many there are."""
    is_missing = [one is None for file in results for one in file]
    return sum(is_missing), len(is_missing)


def dual_cross_entropy(forward: np.ndarray, reverse: np.ndarray) -> np.ndarray:
    """Return the dual conditional cross-entropy of pairs, ``[rows]``; lower is better.

    Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of Noisy Parallel Corpora",
    section 2.1.

    Args:
        forward: cross-entropies per token of targets given sources, ``[rows]``.
        reverse: those of sources given targets, ``[rows]``.
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
    is_kept[np.argsort(scores, kind="stable")[: math.ceil(share * len(scores))]] = True
    is_kept &= np.isfinite(scores)
    if not is_kept.any():
        raise UserError("The models give no pair a score.", "augmentation.filter", "Remove it.")
    return is_kept
