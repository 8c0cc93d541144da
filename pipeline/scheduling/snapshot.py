"""The data and settings of a pipeline at one moment."""

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.components.data.fingerprints import file_digests as digests_of
from regard.components.data.fingerprints import fingerprint
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.sources import Corpus, FileGroup, find_files
from regard.core.errors import NotFoundError
from regard.core.files import read_json_object, write_json
from regard.pipeline.cache_keys import digest, word_file_option, word_files
from regard.pipeline.config import Config
from regard.pipeline.context import resolve_data
from regard.pipeline.scheduling.state import TrainedData, TrainingFiles
from regard.pipeline.workspace import PipelinePaths

# Sections that do not change the model.
_IGNORED_SECTIONS = ("schedule", "kubeflow", "beam", "tune", "tracking")


@dataclass(frozen=True)
class DataSnapshot:
    """The data and settings at one moment.

    Attributes:
        fingerprint: the fingerprint of the data's content.
        word_files: SHA-256 of the word list and the files of vectors, by purpose, as in run
            records.
        key: digest of the data's content and all settings.
        corpus: the corpus, with its spans resolved.
        groups: the files of ``data.train``.
        spans: SHA-256 of the files of each span, the oldest span first.
        notes: a sentence on each span that is left out.
    """

    fingerprint: str
    word_files: dict[str, str]
    key: str
    corpus: Corpus
    groups: list[TrainingFiles]
    spans: dict[str, list[str]]
    notes: list[str] = field(default_factory=list)

    def trained_by(self, run: str | None = None) -> TrainedData:
        """Return the data as that of a run."""
        return TrainedData(key=self.key, groups=self.groups, spans=self.spans, run=run)


def settings_digest(config: Config) -> str:
    """Return a digest of all settings that a model depends on."""
    sections = type(config).model_fields
    return config.digest(*(name for name in sections if name not in _IGNORED_SECTIONS))


def take_snapshot(
    config: Config, paths: PipelinePaths, count_rows: bool = False, save: bool = True
) -> DataSnapshot:
    """Read the data of a pipeline; a file only if its size or modification time has changed.

    Args:
        config: the pipeline's configuration.
        paths: the pipeline's folder, which caches digests if it exists.
        count_rows: whether to count the rows of ``data.train``.
        save: whether to cache the counts.

    Raises:
        UserError: a file is missing or unreadable.
    """
    notes: list[str] = []
    corpus = resolve_data(config, notes)
    folder = paths.root if paths.root.is_dir() else None
    cache = folder / "fingerprints.json" if folder else None
    content = fingerprint(corpus, cache)
    words = _word_digests(config, cache)
    key = digest(content, settings_digest(config), json.dumps(words, sort_keys=True))
    splits = find_files(corpus)
    groups = list(itertools.chain.from_iterable(splits.values()))
    files = itertools.chain.from_iterable(group.files for group in groups)
    file_digests = digests_of(files, cache)
    spans: dict[str, list[str]] = {span.name: [] for span in corpus.spans or ()}
    for group in groups:
        if group.span in spans:
            spans[group.span] += [file_digests[path] for path in group.files]
    train = [_training_files(group, file_digests) for group in splits["train"]]
    if count_rows:
        _count_rows(corpus, splits["train"], train, paths.schedule / "rows.json", save)
    return DataSnapshot(content, words, key, corpus, train, spans, notes)


def _training_files(group: FileGroup, digests: Mapping[str, str]) -> TrainingFiles:
    """Return the files of a group with their sizes and SHA-256."""
    files = [(path, os.stat(path).st_size, digests[path]) for path in group.files]
    return TrainingFiles(files=files)


def _word_digests(config: Config, cache: Path | None) -> dict[str, str]:
    """Return SHA-256 of the files of ``word_files``, which are not part of the fingerprint."""
    files = word_files(config)
    for key, path in files.items():
        if not Path(path).is_file():
            where = config.locate(word_file_option(key))
            remedy = "Restore the file, or use another one."
            raise NotFoundError(f"The file {path} does not exist.", where, remedy)
    digests = digests_of(files.values(), cache)
    return {name: digests[path] for name, path in files.items()}


def _count_rows(
    corpus: Corpus,
    sources: Sequence[FileGroup],
    groups: Sequence[TrainingFiles],
    cache: Path,
    save: bool,
) -> None:
    """Set the rows of each group, from the cache if its content was counted before."""
    cached = read_json_object(cache)
    counts: dict[str, int] = {}
    for source, group in zip(sources, groups, strict=True):
        key = " ".join(digest for _, _, digest in group.files)
        rows = cached.get(key)
        if rows is None:
            rows = sum(1 for _ in read_rows(source, corpus, ReadProblems()))
        counts[key] = group.rows = rows
    if save and cache.parent.parent.is_dir() and counts != cached:
        write_json(cache, counts)
