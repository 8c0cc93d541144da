"""A digest of the corpus's content: the part of CorpusGen's cache key that names cannot give."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.corpus_gen.sources import resolve
from components.files import atomic_write, sha256_file


def fingerprint(data: Mapping[str, Any], cache: Path | None = None) -> str:
    """The digest of every file's content and of which split and side it is for.

    Folders do not count (a moved corpus is the same corpus); file names do, since every
    tf.Example carries its own. With a ``cache`` file, a file whose path, size and time of
    change are the same is not read again.

    Raises:
        UserError: as ``resolve`` does.
    """
    known = _load(cache)
    used: dict[str, list[Any]] = {}
    digest = hashlib.sha256()
    for split, groups in resolve(data).items():
        for group in groups:
            parts = [split, group.format]
            for path in group.files:
                used[path] = _entry(path, known.get(path))
                parts += [os.path.basename(path), used[path][-1]]
            digest.update(json.dumps(parts).encode())
    if cache is not None and any(known.get(path) != entry for path, entry in used.items()):
        atomic_write(cache, json.dumps({**known, **used}, indent=1, sort_keys=True))
    return digest.hexdigest()


def _entry(path: str, known: list[Any] | None) -> list[Any]:
    """Size, time of change and SHA-256 of a file."""
    before = _state(path)
    if known and known[:2] == before:
        return known
    content = sha256_file(path)
    while (after := _state(path)) != before:  # it was being written while we read it
        before, content = after, sha256_file(path)
    return [*before, content]


def _state(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def _load(cache: Path | None) -> dict[str, list[Any]]:
    try:
        known = json.loads(cache.read_text("utf-8")) if cache else {}
    except (OSError, ValueError):  # not there yet, or not ours: the files are read again
        return {}
    return known if isinstance(known, dict) else {}
