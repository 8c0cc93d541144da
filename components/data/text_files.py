"""Lines of text from plain and gzip files, read in blocks.

Only a line feed ends a line: U+2028, U+0085 and the form feed are text. A carriage return before
the line feed and a byte order mark at the start are not part of the text. A file whose lines end
with a carriage return alone is refused.
"""

from __future__ import annotations

import codecs
import gzip
import os
import shlex
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from regard.components.data.file_kinds import (
    GZIP,
    FileKind,
    conversion,
    kind_of_content,
    kind_of_encoding,
)
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.formatting import truncate

if TYPE_CHECKING:
    from regard.components.data.read_problems import ReadProblems

_BOM = b"\xef\xbb\xbf"
_GZIP_REMEDY = "Download or copy it again; `gzip -t` tests it."
# Bytes that show the kind of a file.
_HEAD = 512
# Bytes of the lines that an encoding is guessed from.
_MAX_SAMPLE = 1 << 15


class InvalidLine(str):
    """A line with a recorded problem: U+FFFD replaces what cannot be decoded."""


def read_lines(
    path: str,
    problems: ReadProblems | None = None,
    block: int = 1 << 20,
    max_line: int = 1 << 26,
    encoding: str | None = None,
) -> Iterator[str]:
    """Yield every line; one with a recorded problem as an ``InvalidLine``.

    Args:
        path: a text file; a name that ends in ``.gz`` is unpacked.
        problems: receives the lines that cannot be decoded or hold a NUL; None: U+FFFD replaces
            such bytes.
        block: bytes to read at a time; with ``max_line`` it bounds the memory.
        max_line: bytes of the longest line allowed.
        encoding: its name in Python; None: UTF-8.

    Raises:
        UnreadableFile: the file is empty, truncated, of another kind than its name says, or cannot
            be read.
    """
    line = 0
    # Where a line feed is another byte than in ASCII, lines are split after decoding.
    recode = encoding if encoding and "\n".encode(encoding) != b"\n" else None
    encoding = None if recode else encoding
    for chunk in _read_chunks(path, block, max_line, recode):
        rows = _decode_chunk(chunk, encoding)
        if rows is None:
            is_first = problems is not None and not problems.examples
            rows = [
                decode_line(raw.removesuffix(b"\r"), path, number, problems, encoding)
                for number, raw in enumerate(chunk.split(b"\n"), line + 1)
            ]
            if problems is not None and is_first and not encoding:
                problems.examples[0].remedy = _encoding_remedy(chunk)
        line += len(rows)
        yield from rows
    if not line:
        raise UnreadableFile(path, "the file is empty", "Remove it, or download it again.")


def decode_line(
    raw: bytes, path: str, line: int, problems: ReadProblems | None, encoding: str | None = None
) -> str:
    """Decode one line; if it is not valid text, record the problem."""
    replaced = raw.decode(encoding or "utf-8", "replace")
    if problems is None:
        return replaced.replace("\0", "\ufffd")
    try:
        text = raw.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        problem = f"not {encoding or 'UTF-8'}: byte 0x{raw[error.start]:02X} at byte "
        problem += f"{error.start + 1} of the line"
    else:
        if "\0" not in text:
            return text
        problem = f"NUL at character {text.index(chr(0)) + 1}"
    problems.add(path, line, f"{problem}: {truncate(replaced)!r}")
    return InvalidLine(replaced)


def _encoding_remedy(chunk: bytes) -> str | None:
    """Return how to set the encoding of lines that are not UTF-8, if it can be guessed."""
    import charset_normalizer

    if chunk.startswith(b"\0") and 3 * chunk.count(b"\0") > len(chunk):
        # Split at the byte of a line feed, its lines have no encoding that could be guessed.
        name = "utf_32_be" if chunk.startswith(b"\0\0") else "utf_16_be"
        return f"These bytes look like {name}. Set `data.encoding: {name}`."
    head = chunk[: 8 * _MAX_SAMPLE].split(b"\n")
    lines = [line for line in head if not line.isascii() or b"\0" in line]
    wrong = [line for line in lines if _decode_chunk(line, None) is None]
    sample = b"\n".join(wrong)[:_MAX_SAMPLE]
    best = charset_normalizer.from_bytes(sample).best()
    # A file with a few wrong lines is UTF-8 with errors.
    if best is None or len(sample) < 16 or 2 * len(wrong) <= len(lines):
        return None
    # Most European text is the same in several encodings. Short text is hardly more than a guess.
    is_short = len(sample) < 200 and 4 * sum(byte > 127 for byte in sample) < len(sample)
    is_western = b"\0" not in sample and (is_short or "cp1252" in best.could_be_from_charset)
    name = "cp1252" if is_western else best.encoding
    is_other = name not in ("ascii", "utf_8")  # with a NUL
    return f"These bytes look like {name}. Set `data.encoding: {name}`." if is_other else None


def _decode_chunk(chunk: bytes, encoding: str | None) -> list[str] | None:
    """Decode a chunk of whole lines; None if one of them is not valid text."""
    try:
        text = chunk.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        return None
    rows = text.split("\n")
    if "\r" in text:
        rows = [row.removesuffix("\r") for row in rows]
    return None if "\0" in text else rows


def _read_chunks(path: str, block: int, max_line: int, recode: str | None) -> Iterator[bytes]:
    """Yield chunks of whole lines without the last line feed and the byte order mark."""
    lines = 0
    rest: list[bytes] = []  # the start of a line whose end has not been read
    size = 0
    first = True
    blocks = read_blocks(path, block, recode)
    for data in blocks:
        if first:
            while len(data) < max(4, block) and (more := next(blocks, b"")):
                data += more
            if kind := None if recode else kind_of_encoding(data):
                raise _other_kind(kind, path)
            _check_line_ends(data, path, recode)
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


def read_blocks(path: str, block: int = 1 << 20, recode: str | None = None) -> Iterator[bytes]:
    """Yield the unpacked content of a file.

    Args:
        path: the file; a name that ends in ``.gz`` is unpacked.
        block: bytes to read at a time.
        recode: the encoding of the file, which is converted to UTF-8; None: its bytes.

    Raises:
        UnreadableFile: the file is truncated, of another kind than its name says, or cannot be
            read or converted.
    """
    lines = 0
    # Halves of pairs in UTF-16 become invalid UTF-8, which is reported with its line.
    decoder = codecs.getincrementaldecoder(recode)("surrogatepass") if recode else None
    try:
        with open(path, "rb") as raw, _unpack(raw, path) as stream:
            data = None
            while data != b"":
                data = stream.read1(block)  # type: ignore[attr-defined]
                text = decoder.decode(data, not data) if decoder else None
                content = data if text is None else text.encode("utf-8", "surrogatepass")
                lines += content.count(b"\n")
                if content:
                    yield content
    except EOFError as error:
        message = f"the gzip file is truncated after line {lines:,}"
        raise UnreadableFile(path, message, _GZIP_REMEDY) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        is_trailing = lines and isinstance(error, gzip.BadGzipFile) and "Not a gzip" in str(error)
        reason = "what follows is not gzip" if is_trailing else error
        message = f"the gzip file is damaged after line {lines:,}: {reason}"
        raise UnreadableFile(path, message, _GZIP_REMEDY) from error
    except UnicodeError as error:
        remedy = "Check `data.encoding`, or download the file again."
        raise UnreadableFile(path, f"not {recode}: {error}", remedy, lines + 1) from error
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise UnreadableFile(path, message, "Check the file and its disk.") from error


def _unpack(raw: IO[bytes], path: str) -> IO[bytes]:
    """Return the unpacked content of a file; refuse a file that is no text, or has a wrong name."""
    head = raw.peek(_HEAD)[:_HEAD]  # type: ignore[attr-defined]
    kind = kind_of_content(head, path)
    if not head or not path.lower().endswith(".gz"):
        if kind:
            raise _other_kind(kind, path)
        return raw
    if kind is not GZIP:
        raise UnreadableFile(
            path,
            f"the name ends in .gz, but the file is {kind.name if kind else 'plain text'}",
            "Rename it without `.gz`, compress it with `gzip`, or download it again.",
        )
    unpacked = gzip.GzipFile(fileobj=raw, mode="rb")
    if kind := kind_of_content(unpacked.peek(_HEAD)[:_HEAD], path):
        raise _other_kind(kind, path)
    return unpacked  # type: ignore[return-value]


def _other_kind(kind: FileKind, path: str) -> UnreadableFile:
    message = f"the file is {kind.name}, not rows of UTF-8 text"
    return UnreadableFile(path, message, conversion(kind, path))


def _check_line_ends(head: bytes, path: str, recode: str | None) -> None:
    """Refuse a file that would be a single line because its lines end with carriage returns."""
    if b"\n" in head or b"\r" not in head.removesuffix(b"\r"):
        return
    gzip_suffix = path[-3:] if path.lower().endswith(".gz") else ""
    root, suffix = os.path.splitext(path.removesuffix(gzip_suffix))
    file, output = map(shlex.quote, (path, f"{root}.lf{suffix}{gzip_suffix}"))
    command = f"tr '\\r' '\\n' < {file} > {output}"
    if gzip_suffix:
        command = f"gzip -dc {file} | tr '\\r' '\\n' | gzip > {output}"
    remedy = f"Convert it: `{command}`, and name that file."
    if recode:
        remedy = "Save it with a line feed at the end of each line."
    raise UnreadableFile(path, "lines end with CR (a carriage return), not LF", remedy)
