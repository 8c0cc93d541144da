"""A digest of a corpus's content: the part of CorpusGen's cache key that file names cannot give."""

import contextlib
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.sources import Corpus, FileGroup, find_files
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import SPLITS
from regard.core.files import (
    atomic_write,
    file_state,
    may_be_cached,
    read_json_object,
    sha256_file,
)

# State and SHA-256 of a file.
FileDigest = tuple[int, int, int, int, str]


def fingerprint(corpus: Corpus, cache: Path | None = None, splits: Collection[str] = SPLITS) -> str:
    """Return a digest of every file's content, split and side, and of the images.

    Only the images that rows name count, wherever they are; a missing one counts too, because it
    may appear. Folders do not count: a moved corpus is the same corpus. File names and spans count,
    because every tf.Example holds its own, and so do the shares of ``test_share`` and ``replay``.

    Args:
        corpus: the corpus with its spans resolved.
        cache: a file with known digests: a file with the same path behind all links and the same
            state (size, times of modification and change, inode) is not read again.
        splits: the splits whose files count.

    Raises:
        UserError: a file is missing, as ``find_files`` says.
    """
    known = read_json_object(cache) if cache else {}
    used: dict[str, FileDigest] = {}
    digest = hashlib.sha256()
    files = find_files(corpus)
    groups = [group for split in splits for group in files.get(split, ())]
    for group in groups:
        parts: list[Any] = [group.split, group.format, *group.sides]
        if group.span is not None:
            parts += [group.span, group.test_share]
        if group.replay:
            parts.append(group.replay)
        for path in group.files:
            parts += [os.path.basename(path), _digest(path, known, used)]
        digest.update(json.dumps(parts).encode())
    images = Images.of(corpus.config)
    for name in named_images(corpus, groups):
        path = images.path_of(name)
        content = None
        with contextlib.suppress(OSError):  # the reader of the row reports it
            content = _digest(path, known, used)
        digest.update(json.dumps([name, content]).encode())
    _save(cache, known, used)
    return digest.hexdigest()


def file_digests(paths: Iterable[str], cache: Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of each file; ``cache`` is that of ``fingerprint``.

    Raises:
        OSError: a file cannot be read.
    """
    known = read_json_object(cache) if cache else {}
    used: dict[str, FileDigest] = {}
    digests = {path: _digest(path, known, used) for path in paths}
    _save(cache, known, used)
    return digests


def named_images(corpus: Corpus, groups: Iterable[FileGroup]) -> Iterator[str]:
    """Yield the paths of the images that rows name, each once."""
    columns = [i for i, feature in enumerate(corpus.features) if feature.kind.names_file]
    yielded: set[Any] = {None}
    for group in groups if columns else ():
        # A file that cannot be read ends here; the reader of its rows reports it.
        with contextlib.suppress(UnreadableFile):
            for _, values in read_rows(group, corpus, ReadProblems()):
                for path in (values[column] for column in columns):
                    if path not in yielded:
                        yielded.add(path)
                        yield str(path)


def _digest(path: str, known: Mapping[str, Any], used: dict[str, FileDigest]) -> str:
    """Return the digest of a file, and add it to ``used`` unless it may change unnoticed."""
    resolved = os.path.realpath(path)
    before, entry = file_state(resolved), known.get(resolved)
    if isinstance(entry, list) and tuple(entry[:-1]) == before:
        used[resolved] = (*before, entry[-1])
        return str(entry[-1])
    is_cacheable = may_be_cached(before)
    content = sha256_file(resolved)
    while (after := file_state(resolved)) != before:  # it was written while we read it
        before, is_cacheable = after, may_be_cached(after)
        content = sha256_file(resolved)
    if is_cacheable:
        used[resolved] = (*before, content)
    return content


def _save(cache: Path | None, known: Mapping[str, Any], used: Mapping[str, FileDigest]) -> None:
    if cache is not None and any(known.get(path) != [*entry] for path, entry in used.items()):
        with contextlib.suppress(OSError):  # without the cache, files are read again
            atomic_write(cache, json.dumps({**known, **used}, indent=1, sort_keys=True))
