"""A digest of the corpus's content: the part of CorpusGen's cache key that names cannot give."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import Group, resolve
from components.files import atomic_write, sha256_file


def fingerprint(data: Mapping[str, Any], cache: Path | None = None) -> str:
    """The digest of every file's content, of which split and side it is for, and of the images.

    Of images those count that the rows name, wherever they lie, and no others; one that is not
    there counts, too, since it may come.

    Folders do not count (a moved corpus is the same corpus); file names do, and spans, since
    every tf.Example carries its own, and the shares of the newest span that is tested on and of
    the older ones that are replayed. With a ``cache`` file, a file whose path, size and time of
    change are the same is not read again.

    Raises:
        UserError: as ``resolve`` does.
    """
    known = _load(cache)
    used: dict[str, list[Any]] = {}
    digest = hashlib.sha256()
    given = resolve(data)
    for split, groups in given.items():
        for group in groups:
            parts: list[Any] = [split, group.format, *group.sides]
            if group.span is not None:
                parts += [group.span, group.test_share]
            if group.replay:
                parts.append(group.replay)
            for path in group.files:
                used[path] = _entry(path, known.get(path))
                parts += [os.path.basename(path), used[path][-1]]
            digest.update(json.dumps(parts).encode())
    place = Images(data).place
    for name in named_images(data, [group for groups in given.values() for group in groups]):
        path = place(name)
        try:
            used[path] = _entry(path, known.get(path))
        except OSError:  # what that means for the row is said when it is read
            digest.update(json.dumps([name, None]).encode())
        else:
            digest.update(json.dumps([name, used[path][-1]]).encode())
    _keep(cache, known, used)
    return digest.hexdigest()


def digests(paths: Iterable[str], cache: Path | None = None) -> dict[str, str]:
    """The SHA-256 of each file; with a ``cache``, as ``fingerprint`` keeps it, read only once.

    Raises:
        OSError: a file cannot be read.
    """
    known = _load(cache)
    used = {path: _entry(path, known.get(path)) for path in paths}
    _keep(cache, known, used)
    return {path: entry[-1] for path, entry in used.items()}


def named_images(data: Mapping[str, Any], groups: Iterable[Group]) -> Iterator[str]:
    """The paths of the images that rows name, as they stand there, each once."""
    options = Options.of(data)
    columns = [i for i, feature in enumerate(options.features) if feature.kind == "image"]
    seen: set[Any] = {None}
    for group in groups if columns else ():
        # A file that cannot be read ends here, and is refused by whoever reads it for its rows.
        with contextlib.suppress(Broken):
            for _, values in read(group, options, Problems()):
                for path in (values[column] for column in columns):
                    if path not in seen:
                        seen.add(path)
                        yield str(path)


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


def _keep(
    cache: Path | None, known: Mapping[str, list[Any]], used: Mapping[str, list[Any]]
) -> None:
    if cache is not None and any(known.get(path) != entry for path, entry in used.items()):
        atomic_write(cache, json.dumps({**known, **used}, indent=1, sort_keys=True))


def _load(cache: Path | None) -> dict[str, list[Any]]:
    try:
        known = json.loads(cache.read_text("utf-8")) if cache else {}
    except (OSError, ValueError):  # not there yet, or not ours: the files are read again
        return {}
    return known if isinstance(known, dict) else {}
