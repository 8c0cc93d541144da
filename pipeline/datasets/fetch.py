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
        url, limit = manifest["url"].rstrip("/"), file.get("max_bytes", _MAX_BYTES)
        download_file(url, file["name"], directory, file["sha256"], limit)
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


def download_file(
    url: str, name: str, directory: Path, checksum: str | None, max_bytes: int = _MAX_BYTES
) -> None:
    """Download a file of an address; an interrupted download leaves none.

    Args:
        url: the address of the folder.
        name: the name of the file in it, and in ``directory``.
        directory: created if missing.
        checksum: the SHA-256 of the content; None if it is not known.
        max_bytes: the largest size.

    Raises:
        UserError: no network, a missing or too large file, or another checksum.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    # Without the header a server may compress the file a second time.
    headers = {"Accept-Encoding": "identity"}
    downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS, headers=headers)

    def download(url: str, path: str, store: Any) -> None:
        with _LimitedFile(path, "wb") as output:
            output.url, output.limit = url, max_bytes
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


def exists(url: str) -> bool:
    """Return whether an address has a file.

    Raises:
        UserError: the server cannot be reached, or refuses.
    """
    import requests

    try:
        with requests.get(url, stream=True, timeout=_TIMEOUT_SECONDS) as response:
            if response.status_code == requests.codes.not_found:
                return False
            response.raise_for_status()
            return True
    except requests.RequestException as error:
        remedy = "Check the address and the network, and try again."
        raise EnvironmentFault(f"The download failed: {error}.", url, remedy) from None
