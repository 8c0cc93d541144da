"""Lines of UTF-8 text from plain and gzip files, a block at a time.

A line ends at a line feed and nowhere else: U+2028, U+0085 and the form feed are text. A carriage
return before the line feed and a byte order mark at the start belong to the file, not to the text.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO

from components.corpus_gen.problems import Broken, Problems

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


def lines(
    path: str,
    problems: Problems,
    errors: str = "fail",
    block: int = 1 << 20,
    longest: int = 1 << 26,
) -> Iterator[str | None]:
    """Yields every line, or None for one that is to be left out (its problem is noted).

    Args:
        path: a UTF-8 file; a name that ends in ``.gz`` is unpacked on the way.
        problems: where lines that are not UTF-8 or hold a NUL are noted.
        errors: ``fail`` and ``skip`` leave such lines out, ``replace`` puts U+FFFD for the bytes.
        block: bytes read at a time; with ``longest`` it bounds the memory.
        longest: the longest line, in bytes.

    Raises:
        Broken: the file is empty, cut off, of another kind than its name says, or cannot be read.
    """
    number = 0
    for chunk in _chunks(path, block, longest):
        rows = _decode(chunk, path, number, problems, errors)
        number += len(rows)
        yield from rows
    if not number:
        raise Broken(path, "the file is empty", "Take it off the list, or fetch it again.")


def decode_line(raw: bytes, path: str, number: int, problems: Problems, errors: str) -> str | None:
    """One line's text, or None where it is to be left out; notes what is wrong with it."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", "replace")
        told = f"not UTF-8: byte 0x{raw[error.start]:02X} at byte {error.start + 1} of the line"
        problems.add("encoding", errors, path, number, f"{told}: {shorten(text)!r}")
        if errors != "replace":
            return None
    if "\0" in text:
        told = f"a NUL character at character {text.index(chr(0)) + 1}"
        problems.add("nul", errors, path, number, f"{told}: {shorten(text)!r}")
        if errors != "replace":
            return None
        text = text.replace("\0", "\ufffd")
    return text


def shorten(text: str, length: int = 60) -> str:
    """The start of a text, for a message."""
    text = text[: 4 * length].strip()
    return text if len(text) <= length else text[: length - 3].rstrip() + "..."


def kind_of(head: bytes) -> str | None:
    """What a file is by its first bytes, or None for what may be text."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def _decode(
    chunk: bytes, path: str, before: int, problems: Problems, errors: str
) -> list[str | None]:
    """The lines of a chunk that ends where a line ends; ``before`` lines came earlier."""
    if b"\0" not in chunk:
        try:
            text = chunk.decode("utf-8")
        except UnicodeDecodeError:
            pass  # some line is wrong: look at each
        else:
            rows = text.split("\n")
            return [r[:-1] if r.endswith("\r") else r for r in rows] if "\r" in text else [*rows]
    return [
        decode_line(raw.removesuffix(b"\r"), path, before + i, problems, errors)
        for i, raw in enumerate(chunk.split(b"\n"), 1)
    ]


def _chunks(path: str, block: int, longest: int) -> Iterator[bytes]:
    """Pieces of whole lines, each without its last line feed and the file without its BOM."""
    number = 0
    held: list[bytes] = []  # the start of a line whose end is not read yet
    size = 0
    first = True
    try:
        with open(path, "rb") as raw, _unpacked(raw, path) as stream:
            while data := stream.read1(block):  # type: ignore[attr-defined]
                if first:
                    while len(data) < 4 and (more := stream.read1(block)):  # type: ignore[attr-defined]
                        data += more
                    _refuse_other_kinds(data, path)
                    data = data.removeprefix(_BOM)
                    first = False
                cut = data.rfind(b"\n")
                if cut >= 0:
                    chunk = b"".join([*held, data[:cut]])
                    yield chunk
                    number += chunk.count(b"\n") + 1
                    held, size, data = [], 0, data[cut + 1 :]
                if data:
                    held.append(data)
                    size += len(data)
                if size > longest:
                    raise Broken(
                        path,
                        f"a line of more than {longest / 2**20:g} MiB",
                        "Is this a text file with one row on each line?",
                        number + 1,
                    )
        if held:
            yield b"".join(held)
    except EOFError as error:
        raise Broken(
            path,
            f"the gzip file is cut off after line {number:,}",
            "Fetch or copy it again; `gzip -t` checks it.",
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Broken(
            path,
            f"the gzip file is damaged after line {number:,}: {error}",
            "Fetch or copy it again; `gzip -t` checks it.",
        ) from error
    except OSError as error:
        raise Broken(
            path, f"the file cannot be read: {error.strerror}", "Check the file and its disk."
        ) from error


def _unpacked(raw: IO[bytes], path: str) -> IO[bytes]:
    head = raw.peek(64)[:64]  # type: ignore[attr-defined]
    kind = kind_of(head)
    if not head or not path.lower().endswith(".gz"):
        return raw
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[return-value]
    if kind is None:
        start = head.removeprefix(_BOM).decode("utf-8", "replace")
        web = start.lstrip().lower().startswith(("<!doctype", "<html"))
        kind = f"{'a web page' if web else 'plain text'}: it begins {shorten(start, 40)!r}"
    raise Broken(
        path,
        f"the name ends in .gz, but the file is {kind}",
        "Rename it without `.gz`, pack it with `gzip`, or fetch it again.",
    )


def _refuse_other_kinds(head: bytes, path: str) -> None:
    kind = kind_of(head)
    if kind is None:
        return
    remedies = {
        "gzip": "Give it a name that ends in `.gz`.",
        "UTF-16 text": "Convert it: `iconv -f UTF-16 -t UTF-8`.",
        "Parquet": "Give it a name that ends in `.parquet`, or set `data.format: parquet`.",
    }
    raise Broken(
        path,
        f"the file is {kind}, not UTF-8 text",
        remedies.get(kind, "Unpack it first, or pack it with gzip."),
    )
