"""Downloads of published data sets: with pinned checksums, cached.

A manifest, such as ``multi30k.json``, lists the files of a data set with two checksums: that of the
published ``.gz`` file, which pooch verifies, and that of the text in it, which also recognises a
copy that was compressed differently.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import zlib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from regard.components.common.errors import UserError
from regard.components.common.files import atomic_path
from regard.pipeline.datasets.dataset_files import Dataset, Progress, disk_errors

if TYPE_CHECKING:
    import pooch


class ManifestFile(TypedDict):
    """One file of a manifest."""

    name: str
    split: str
    language: str
    lines: int
    sha256: str
    text_sha256: str


class Manifest(TypedDict):
    """A data set: its version, where it is published, and its files."""

    name: str
    version: str
    url: str
    files: list[ManifestFile]


def fetch_multi30k(directory: str | Path, progress: Progress | None = None) -> Dataset:
    """Download Multi30k, task 1, raw text; see `fetch`."""
    text = resources.files(__package__).joinpath("multi30k.json").read_text("utf-8")
    return fetch(json.loads(text), directory, progress)


def fetch(
    manifest: Manifest,
    directory: str | Path,
    progress: Progress | None = None,
    timeout: float = 30.0,
    retries: int = 3,
) -> Dataset:
    """Download the files of a data set into ``directory`` and verify them.

    Files that exist and are correct are not downloaded. Downloads are cached in
    ``$REGARD_HOME/cache``; an interrupted one leaves no file.

    Args:
        manifest: the data set.
        directory: created if missing.
        progress: receives the name of each file and the fraction that is done.
        timeout: seconds without a response.
        retries: further attempts after a failed download.

    Raises:
        UserError: no network, a missing file, a wrong checksum, a full disk, or a directory that
            cannot be written.
    """
    directory, files = Path(directory), manifest["files"]
    home = Path(os.environ.get("REGARD_HOME") or "workspace")
    cache = home / "cache" / manifest["name"] / manifest["version"]
    count = 0
    for number, file in enumerate(files):
        target = directory / file["name"]
        with disk_errors(directory):
            if text_digest(target) == file["text_sha256"]:
                continue
        if progress:
            progress(file["name"], number / len(files))
        with disk_errors(cache, "Set REGARD_HOME to another folder."):
            cached = _download(manifest, file, cache, directory, timeout, retries)
        with disk_errors(directory), atomic_path(target) as temporary:
            shutil.copyfile(cached, temporary)
        count += 1
    if progress:
        progress(f"{count} of {len(files)} files downloaded", 1.0)
    return Dataset(
        name=manifest["name"],
        directory=directory,
        files=tuple(directory / file["name"] for file in files),
        rows={file["split"]: file["lines"] for file in files},
        files_written=count,
    )


def text_digest(path: Path) -> str | None:
    """Return the SHA-256 of the text in a ``.gz`` file; None if it is missing or damaged."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except (FileNotFoundError, EOFError, gzip.BadGzipFile, zlib.error):
        return None
    return digest.hexdigest()


def _download(
    manifest: Manifest,
    file: ManifestFile,
    cache: Path,
    directory: Path,
    timeout: float,
    retries: int,
) -> Path:
    """Return the file in the cache, downloaded unless it is there and correct."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    name, url = file["name"], manifest["url"].rstrip("/")
    # Without the header a server may compress the file a second time.
    downloader = pooch.HTTPDownloader(timeout=timeout, headers={"Accept-Encoding": "identity"})
    store: pooch.Pooch = pooch.create(
        cache, f"{url}/", registry={name: file["sha256"]}, retry_if_failed=retries
    )
    try:
        return Path(store.fetch(name, downloader=downloader))
    except requests.RequestException as error:
        message = f"The download failed: {error}."
    except ValueError:
        message = f"{name} does not have the published checksum, SHA-256 {file['sha256']}."
    raise UserError(
        message,
        where=f"{url}/{name}",
        remedy=f"Check the network and try again, or copy {name} into {directory} yourself.",
    )
