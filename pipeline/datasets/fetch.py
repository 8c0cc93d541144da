"""Downloads of published data sets, with pinned checksums.

A manifest, such as ``multi30k.json``, lists the files of a data set with two checksums: that of the
published ``.gz`` file, which pooch verifies, and that of the text in it, which also recognises a
copy that was compressed differently.
"""

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from regard.core.errors import EnvironmentFault, UserError
from regard.core.formatting import format_bytes
from regard.pipeline.datasets.dataset_files import Progress

_TIMEOUT_SECONDS = 30.0  # without a response
_RETRIES = 3  # after a failed download
_MAX_BYTES = 1 << 30  # of a file whose manifest states no limit


def fetch_multi30k(directory: str | Path, progress: Progress | None = None) -> dict[str, int]:
    """Download Multi30k, task 1, raw text; see `fetch`."""
    text = resources.files(__package__).joinpath("multi30k.json").read_text("utf-8")
    return fetch(json.loads(text), directory, progress)


def fetch(
    manifest: Mapping[str, Any], directory: str | Path, progress: Progress | None = None
) -> dict[str, int]:
    """Download the files of a data set into ``directory`` and verify them.

    Files that exist and are correct are not downloaded, damaged ones are replaced; an interrupted
    download leaves no file.

    Args:
        manifest: the data set: ``url``, and of each of its ``files`` the ``name``, the ``split``,
            its ``lines``, ``sha256``, ``text_sha256`` and ``max_bytes``.
        directory: created if missing.
        progress: receives the name of each file and the fraction that is done.

    Returns:
        The number of rows of each split.

    Raises:
        UserError: no network, a missing file, a wrong checksum, or a file with other content.
    """
    directory = Path(directory)
    files = manifest["files"]
    digests = {file["name"]: text_digest(directory / file["name"]) for file in files}
    for file in files:  # before anything is downloaded
        if digests[file["name"]] not in (None, file["text_sha256"]):
            message = "The file has other content than the data set."
            where = str(directory / file["name"])
            raise UserError(message, where, "Choose another folder with --out.")
    missing = [file for file in files if digests[file["name"]] is None]
    for number, file in enumerate(missing):
        if progress:
            progress(file["name"], number / len(missing))
        _download(manifest["url"].rstrip("/"), file, directory)
    if progress:
        progress(f"{len(missing)} of {len(files)} files downloaded", 1.0)
    return {file["split"]: file["lines"] for file in files}


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


class _LimitedFile(io.FileIO):
    """A file that a download may fill up to a limit."""

    url = ""
    limit = _MAX_BYTES

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.limit:
            message = f"The file is larger than {format_bytes(self.limit)}."
            raise EnvironmentFault(message, self.url, "Check the address in the manifest.")
        return super().write(data)


def _download(url: str, file: Mapping[str, Any], directory: Path) -> None:
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    name = file["name"]
    checksum = file["sha256"]
    # Without the header a server may compress the file a second time.
    headers = {"Accept-Encoding": "identity"}
    downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS, headers=headers)

    def download(url: str, path: str, store: Any) -> None:
        with _LimitedFile(path, "wb") as output:
            output.url = url
            output.limit = file.get("max_bytes", _MAX_BYTES)
            downloader(url, output, store)

    store = pooch.create(directory, f"{url}/", registry={name: checksum}, retry_if_failed=_RETRIES)
    try:
        store.fetch(name, downloader=download)
        return
    except requests.RequestException as error:
        message = f"The download failed: {error}."
    except ValueError:
        message = f"{name} does not have the published checksum, SHA-256 {checksum}."
    remedy = f"Check the network and try again, or copy {name} into {directory} yourself."
    raise EnvironmentFault(message, f"{url}/{name}", remedy)
