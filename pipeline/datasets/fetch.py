"""Downloads of published data sets: pinned, verified, resumable.

A manifest beside this file lists every file of a data set with the SHA-256 of its text (of what
is inside the ``.gz``: compressing again changes the outside, never the text).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.files import atomic_path
from pipeline.datasets.download import download
from pipeline.datasets.summary import Progress, Summary, disk_errors


@dataclass(frozen=True)
class File:
    """One file of a manifest."""

    name: str
    split: str
    language: str
    lines: int
    sha256: str


def fetch_multi30k(directory: str | Path, **options: Any) -> Summary:
    """Downloads Multi30k, task 1, raw text; see :func:`fetch` for the options."""
    return fetch("multi30k", directory, **options)


def fetch(
    name: str,
    directory: str | Path,
    *,
    languages: Iterable[str] | None = None,
    base_url: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    retries: int = 4,
    backoff: float = 1.0,
) -> Summary:
    """Puts the files of the data set ``name`` into ``directory`` and verifies each.

    Files that are there and right are left alone, without a request; a download that was cut
    off goes on where it stopped.

    Args:
        directory: made if absent.
        languages: such as ``("en", "de")``; all by default.
        base_url: where the files are, instead of the published place (a mirror).
        cache: where downloads are kept; ``$REGARD_HOME/cache`` by default.
        progress: told what is being fetched and the share done.
        timeout: seconds without an answer or a byte.
        retries: attempts after the first one that gains no byte.
        backoff: seconds before the second attempt; doubled for each further one.

    Raises:
        UserError: an unknown language, no network, a missing file, a checksum that differs, a
            full disk or a directory that cannot be written.
    """
    directory = Path(directory)
    manifest = _manifest(name)
    files = _chosen(manifest, languages)
    base = (base_url or manifest["url"]).rstrip("/")
    home = Path(cache) if cache else Path(os.environ.get("REGARD_HOME") or "workspace") / "cache"
    store = home / name / manifest["version"]
    made = 0
    for number, file in enumerate(files):
        share = number / len(files)
        final, kept = directory / file.name, store / file.name
        with disk_errors(directory):
            if text_digest(final) == file.sha256:
                continue
        if progress:
            progress(file.name, share)
        with disk_errors(store, instead="Set REGARD_HOME to another one."):
            if text_digest(kept) != file.sha256:
                _download(file, f"{base}/{file.name}", kept, directory, timeout, retries, backoff)
        with disk_errors(directory), atomic_path(final) as temporary:
            shutil.copyfile(kept, temporary)
        made += 1
    if progress:
        progress(f"{made} of {len(files)} files fetched", 1.0)
    return Summary(
        name=name,
        directory=directory,
        files=tuple(directory / file.name for file in files),
        rows={file.split: file.lines for file in files},
        made=made,
    )


def text_digest(path: Path) -> str | None:
    """The SHA-256 of the text in a ``.gz`` file; None if it is absent or no whole gzip file."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except (FileNotFoundError, EOFError, gzip.BadGzipFile, zlib.error):
        return None
    return digest.hexdigest()


def _download(
    file: File,
    url: str,
    kept: Path,
    directory: Path,
    timeout: float,
    retries: int,
    backoff: float,
) -> None:
    by_hand = f"Or copy {file.name} into {directory} by hand, and run it again."
    part = kept.with_name(kept.name + ".part")
    kept.parent.mkdir(parents=True, exist_ok=True)
    got = None
    # What an earlier run left behind may be of another file: one clean attempt after it.
    for _ in range(2 if part.exists() else 1):
        download(url, part, timeout=timeout, retries=retries, backoff=backoff, remedy=by_hand)
        got = text_digest(part)
        if got == file.sha256:
            os.replace(part, kept)
            return
        part.unlink()
    raise UserError(
        f"{file.name} is not what was published: expected the text with SHA-256 {file.sha256}, "
        f"got {got or 'no whole gzip file'}",
        where=url,
        remedy=f"The bad file was removed: run it again, from another network. {by_hand}",
    )


def _manifest(name: str) -> dict[str, Any]:
    text = resources.files("pipeline.datasets").joinpath(f"{name}.json").read_text("utf-8")
    return json.loads(text)


def _chosen(manifest: dict[str, Any], languages: Iterable[str] | None) -> list[File]:
    files = [File(**entry) for entry in manifest["files"]]
    known = sorted({file.language for file in files})
    wanted = known if languages is None else list(languages)
    for language in wanted:
        if language not in known:
            raise UserError(
                f"{manifest['name']} has no language {language!r}",
                remedy=f"Choose among: {', '.join(known)}.",
            )
    return [file for file in files if file.language in wanted]
