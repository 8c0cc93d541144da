"""Lines of UTF-8 text from plain and gzip files, read in blocks.

Only a line feed ends a line: U+2028, U+0085 and the form feed are text. A carriage return before
the line feed and a byte order mark at the start are not part of the text.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO

from regard.components.common.formatting import truncate
from regard.components.data.read_problems import ReadProblems, UnreadableFile

_BOM = b"\xef\xbb\xbf"
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "a zip archive",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PAR1": "Parquet",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}

_KIND_REMEDIES = {
    "gzip": "Give it a name that ends in `.gz`.",
    "UTF-16 text": "Convert it: `iconv -f UTF-16 -t UTF-8`.",
    "Parquet": "Give it a name that ends in `.parquet`, or set `data.format: parquet`.",
}
_GZIP_REMEDY = "Download or copy it again; `gzip -t` tests it."


def read_lines(
    path: str,
    problems: ReadProblems | None = None,
    block: int = 1 << 20,
    max_line: int = 1 << 26,
) -> Iterator[str | None]:
    """Yield every line, or None for a line that is skipped because of a problem.

    Args:
        path: a UTF-8 file; a name that ends in ``.gz`` is unpacked.
        problems: receives the lines that are not UTF-8 or hold a NUL; None: U+FFFD replaces such
            bytes.
        block: bytes to read at a time; with ``max_line`` it bounds the memory.
        max_line: bytes of the longest line allowed.

    Raises:
        UnreadableFile: the file is empty, truncated, of another kind than its name says, or cannot
            be read.
    """
    line = 0
    for chunk in _read_chunks(path, block, max_line):
        texts = _decode_chunk(chunk, path, line, problems)
        line += len(texts)
        yield from texts
    if not line:
        raise UnreadableFile(path, "the file is empty", "Remove it, or download it again.")


def decode_line(raw: bytes, path: str, line: int, problems: ReadProblems | None) -> str | None:
    """Decode one line; None, and a recorded problem, if it is not valid text."""
    replaced = raw.decode("utf-8", "replace")
    if problems is None:
        return replaced.replace("\0", "\ufffd")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: byte 0x{raw[error.start]:02X} at byte {error.start + 1} of the line"
    else:
        if "\0" not in text:
            return text
        problem = f"NUL at character {text.index(chr(0)) + 1}"
    problems.add(path, line, f"{problem}: {truncate(replaced)!r}")
    return None


def _file_kind(head: bytes) -> str | None:
    """Return the kind of a file by its first bytes; None for possible text."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def _decode_chunk(
    chunk: bytes, path: str, lines_before: int, problems: ReadProblems | None
) -> list[str | None]:
    """Decode a chunk of whole lines."""
    if b"\0" not in chunk:
        try:
            text = chunk.decode("utf-8")
        except UnicodeDecodeError:
            pass  # decode line by line, to find the wrong ones
        else:
            rows = text.split("\n")
            return [r[:-1] if r.endswith("\r") else r for r in rows] if "\r" in text else [*rows]
    return [
        decode_line(raw.removesuffix(b"\r"), path, lines_before + i, problems)
        for i, raw in enumerate(chunk.split(b"\n"), 1)
    ]


def _read_chunks(path: str, block: int, max_line: int) -> Iterator[bytes]:
    """Yield chunks of whole lines without the last line feed and the byte order mark."""
    lines = 0
    rest: list[bytes] = []  # the start of a line whose end has not been read
    size = 0
    first = True
    try:
        with open(path, "rb") as raw, _unpack(raw, path) as stream:
            while data := stream.read1(block):  # type: ignore[attr-defined]
                if first:
                    while len(data) < 4 and (more := stream.read1(block)):  # type: ignore[attr-defined]
                        data += more
                    _check_is_text(data, path)
                    data = data.removeprefix(_BOM)
                    first = False
                end = data.rfind(b"\n")
                if end >= 0:
                    chunk = b"".join([*rest, data[:end]])
                    yield chunk
                    lines += chunk.count(b"\n") + 1
                    rest, size, data = [], 0, data[end + 1 :]
                if data:
                    rest.append(data)
                    size += len(data)
                if size > max_line:
                    message = f"a line is longer than {max_line / 2**20:g} MiB"
                    remedy = "Check that this is a text file with one row per line."
                    raise UnreadableFile(path, message, remedy, lines + 1)
        if rest:
            yield b"".join(rest)
    except EOFError as error:
        message = f"the gzip file is truncated after line {lines:,}"
        raise UnreadableFile(path, message, _GZIP_REMEDY) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        message = f"the gzip file is damaged after line {lines:,}: {error}"
        raise UnreadableFile(path, message, _GZIP_REMEDY) from error
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise UnreadableFile(path, message, "Check the file and its disk.") from error


def _unpack(raw: IO[bytes], path: str) -> IO[bytes]:
    head = raw.peek(64)[:64]  # type: ignore[attr-defined]
    kind = _file_kind(head)
    if not head or not path.lower().endswith(".gz"):
        return raw
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[return-value]
    raise UnreadableFile(
        path,
        f"the name ends in .gz, but the file is {kind or 'plain text'}",
        "Rename it without `.gz`, compress it with `gzip`, or download it again.",
    )


def _check_is_text(head: bytes, path: str) -> None:
    kind = _file_kind(head)
    if kind is not None:
        default = "Unpack it first, or compress it with gzip."
        remedy = _KIND_REMEDIES.get(kind, default)
        raise UnreadableFile(path, f"the file is {kind}, not UTF-8 text", remedy)
