"""What lies there now: the data and the settings of a pipeline, as far as a schedule asks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.corpus_gen import resolve
from components.corpus_gen.fingerprints import digests, fingerprint
from components.corpus_gen.formats import Options, read
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import Group
from components.errors import UserError
from components.files import atomic_write
from pipeline.inputs import data_section

if TYPE_CHECKING:
    from pipeline.config import Config
    from pipeline.workspace import PipelinePaths

# None of them says what the model is: a new time is no reason to train.
_ASIDE = ("schedule", "kubeflow", "beam", "tune")


@dataclass(frozen=True)
class Look:
    """The data and the settings at one moment.

    Attributes:
        fingerprint: of the data's content.
        words: SHA-256 of each file of words or vectors, by what it is for, as runs record it.
        key: of the data's content and all settings; what is tried is known by it.
        data: the section, with its spans settled.
        groups: the files of ``data.train`` that are read together: their ``files`` with size and
            SHA-256, and where they were counted their ``rows``.
        spans: the content of each span that would be taken, oldest first: SHA-256 of its files.
        notes: a sentence on each span that is left out, and on gaps.
    """

    fingerprint: str
    words: dict[str, str]
    key: str
    data: dict[str, Any]
    groups: list[dict[str, Any]]
    spans: dict[str, list[str]]
    notes: list[str] = field(default_factory=list)


def settings_digest(config: Config) -> str:
    """A digest of all that a run depends on in the YAML file."""
    return config.digest(*(name for name in type(config).model_fields if name not in _ASIDE))


def look(config: Config, paths: PipelinePaths, count: bool = False, keep: bool = True) -> Look:
    """Looks at the data of a pipeline.

    A file is read again only where its size or its time of change is another one.

    Args:
        config: the pipeline's.
        paths: of its folder, where what was read is remembered, once there is one.
        count: whether to count the rows of ``data.train``'s files.
        keep: whether to remember the counts.

    Raises:
        UserError: a file is missing, or cannot be read.
    """
    notes: list[str] = []
    data = data_section(config, notes)
    data.pop("checks", None)
    folder = paths.root if paths.root.is_dir() else None
    cache = folder / "fingerprints.json" if folder else None
    content = fingerprint(data, cache)
    files = _word_files(config)
    read_words = digests(files.values(), cache)
    words = {name: read_words[path] for name, path in files.items()}
    parts = [content, settings_digest(config), json.dumps(words, sort_keys=True)]
    key = hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()[:16]
    given = resolve(data)
    every = [group for groups in given.values() for group in groups]
    known = digests((path for group in every for path in group.files), cache)
    spans: dict[str, list[str]] = {
        one["name"]: [] for one in data.get("spans", {}).get("taken", ())
    }
    for group in every:
        if group.span in spans:
            spans[group.span] += [known[path] for path in group.files]
    groups = [_described(group, known) for group in given["train"]]
    if count:
        kept = paths.schedule / "rows.json" if folder else None
        _count(data, given["train"], groups, kept, keep)
    return Look(content, words, key, data, groups, spans, notes)


def _word_files(config: Config) -> dict[str, str]:
    """The files of words and of vectors, which the data's fingerprint does not have."""
    files: dict[str, str] = {}
    if config.tokenizer is not None and config.tokenizer.words is not None:
        files["words"] = config.tokenizer.words
    pretrained = getattr(config.model, "pretrained", None)
    files.update(pretrained.files() if pretrained else {})
    for path in files.values():
        if not Path(path).is_file():
            raise UserError("there is no such file of words or vectors", where=path)
    return files


def _described(group: Group, known: Mapping[str, str]) -> dict[str, Any]:
    files = [[path, os.stat(path).st_size, known[path]] for path in group.files]
    return {"files": files}


def _count(
    data: Mapping[str, Any],
    given: list[Group],
    groups: list[dict[str, Any]],
    cache: Path | None,
    keep: bool,
) -> None:
    """Counts the rows of each group; those of the same content were counted before."""
    before = _load(cache)
    options = Options.of(data)
    counts: dict[str, int] = {}
    for group, told in zip(given, groups, strict=True):
        key = " ".join(content for _, _, content in told["files"])
        if (rows := before.get(key)) is None:
            try:
                rows = sum(1 for _ in read(group, options, Problems()))
            except Broken as broken:
                raise UserError(f"cannot be read: {broken}", where=group.files[0]) from None
        counts[key] = told["rows"] = rows
    if keep and cache is not None and counts != before:
        atomic_write(cache, json.dumps(counts, indent=1))


def _load(cache: Path | None) -> dict[str, int]:
    try:
        known = json.loads(cache.read_text(encoding="utf-8")) if cache else {}
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
