"""One file over HTTP: goes on where it stopped, and tries again when the connection breaks."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import UserError

if TYPE_CHECKING:
    import requests

BLOCK = 1 << 16


class _TryAgain(Exception):
    """An attempt that failed in a way that another one may not."""


def download(
    url: str, part: Path, *, timeout: float, retries: int, backoff: float, remedy: str
) -> None:
    """Downloads ``url`` to ``part``, adding to what ``part`` already holds.

    Args:
        part: the file so far; stays when the download fails, for the next call to go on from.
        timeout: seconds without an answer or a byte.
        retries: attempts after the first one that gains no byte; others are not counted.
        backoff: seconds before the second attempt; doubled for each further one.
        remedy: what the user can do if it fails for good.

    Raises:
        UserError: the server has no such file or refuses it, or no attempt succeeded.
    """
    import requests

    failures = 0
    with requests.Session() as session:
        while True:
            before = _size(part)
            try:
                _attempt(session, url, part, timeout, remedy)
                return
            except _TryAgain as error:
                failures = 1 if _size(part) > before else failures + 1
                if failures > retries:
                    raise UserError(
                        f"the download failed {failures} times: {error}",
                        where=url,
                        remedy=f"Check the network and run it again: it goes on where it "
                        f"stopped. {remedy}",
                    ) from error
                time.sleep(backoff * 2 ** (failures - 1))


def _attempt(session: requests.Session, url: str, part: Path, timeout: float, remedy: str) -> None:
    import requests
    import urllib3

    start = _size(part)
    # The file is wanted as it lies there: "identity" keeps servers from compressing it again.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with session.get(url, headers=headers, timeout=timeout, stream=True) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                if _total(response) == start:
                    return  # the part was already the whole file
                part.unlink()
                raise _TryAgain("the server's file is not the one begun")
            _check(response, url, remedy)
            start = _offset(response, start)
            expected = response.headers.get("Content-Length")
            with open(part, "r+b" if start else "wb") as file:
                file.seek(start)
                file.truncate()
                for block in response.raw.stream(BLOCK, decode_content=False):
                    file.write(block)
                received = file.tell() - start
            if expected is not None and received != int(expected):
                raise _TryAgain(f"the connection closed after {received:,} of {expected} bytes")
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _TryAgain(_reason(error)) from error


def _check(response: requests.Response, url: str, remedy: str) -> None:
    status = response.status_code
    if status in (200, 206):
        return
    if status in (408, 429) or status >= 500:
        raise _TryAgain(f"the server answered {status} {response.reason}")
    what = "the server has no such file" if status in (404, 410) else "the server refuses the file"
    raise UserError(f"{what} (status {status})", where=url, remedy=remedy)


def _offset(response: requests.Response, start: int) -> int:
    """Where in the file the answer's bytes belong: 0 if the server sends it all again."""
    if response.status_code != 206:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != start:
        raise _TryAgain("the server answered with another range than the one asked for")
    return start


def _total(response: requests.Response) -> int | None:
    match = re.match(r"bytes \*/(\d+)", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    """The innermost reason: the outer ones only say that there was one."""
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return f"{type(cause).__name__}: {cause}"
