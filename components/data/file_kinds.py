"""Files that cannot be read as they are: how to recognise them, and how to convert them."""

import shlex
from typing import NamedTuple


class FileKind(NamedTuple):
    """A kind of file.

    Attributes:
        name: what messages call it.
        magic: its first bytes.
        suffixes: the ends of its names in lower case.
        remedy: what to do; ``{file}`` is the path, ``{output}`` the path without the suffix.
    """

    name: str
    magic: bytes
    suffixes: tuple[str, ...]
    remedy: str


_RECOMPRESS = "Convert it to gzip: `{program} {{file}} | gzip > {{output}}.gz`."
_SAVE_AS_CSV = "Save it as CSV in UTF-8, and name that file."
_TAR = (".tar", ".tgz", ".tar.gz", ".tbz2", ".tar.bz2", ".txz", ".tar.xz", ".tar.zst")
# The first bytes of a tar archive are the name of a file; this field has a fixed place.
_TAR_MAGIC, _TAR_START = b"ustar", 257

GZIP = FileKind("gzip", b"\x1f\x8b", (), "Give it a name that ends in `.gz`.")
_TEXT_REMEDY = "Set `data.encoding: {name}`, or convert it: `iconv -f {command} -t UTF-8`."
_UTF_16_REMEDY = _TEXT_REMEDY.format(name="utf-16", command="UTF-16")
_UTF_32_REMEDY = _TEXT_REMEDY.format(name="utf-32", command="UTF-32")
# The first kind whose magic or suffix matches counts.
_KINDS = (
    FileKind("a tar archive", b"", _TAR, "Unpack it with `tar -xf {file}`, and name its files."),
    FileKind("a spreadsheet", b"PK\x03\x04", (".xlsx", ".ods"), _SAVE_AS_CSV),
    FileKind("a spreadsheet", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", (".xls",), _SAVE_AS_CSV),
    FileKind(
        "a zip archive",
        b"PK\x03\x04",
        (".zip",),
        "Unpack it with `unzip {file}`, and name its files.",
    ),
    FileKind(
        "a 7z archive",
        b"7z\xbc\xaf\x27\x1c",
        (".7z",),
        "Unpack it with `7z x {file}`, and name its files.",
    ),
    FileKind(
        "a RAR archive",
        b"Rar!\x1a\x07",
        (".rar",),
        "Unpack it with `unrar x {file}`, and name its files.",
    ),
    FileKind("bzip2", b"BZh", (".bz2",), _RECOMPRESS.format(program="bzip2 -dc")),
    FileKind("xz", b"\xfd7zXZ\x00", (".xz",), _RECOMPRESS.format(program="xz -dc")),
    FileKind(
        "Zstandard", b"\x28\xb5\x2f\xfd", (".zst", ".zstd"), _RECOMPRESS.format(program="zstd -dc")
    ),
    FileKind("LZ4", b"\x04\x22\x4d\x18", (".lz4",), _RECOMPRESS.format(program="lz4 -dc")),
    FileKind("compressed", b"\x1f\x9d", (".z",), _RECOMPRESS.format(program="zcat")),
    GZIP,
    FileKind("Parquet", b"PAR1", (), "Name it `.parquet`, or set `data.format: parquet`."),
    FileKind("Arrow", b"ARROW1", (), "Name it `.arrow`, or set `data.format: arrow`."),
    FileKind(
        "a pointer of Git LFS",
        b"version https://git-lfs.github.com/spec/",
        (),
        "Download the file itself with `git lfs pull`.",
    ),
)
# Their bytes are text after decoding, so that `data.encoding` can name them.
_ENCODED_KINDS = (
    FileKind("UTF-32 text", b"\xff\xfe\x00\x00", (), _UTF_32_REMEDY),
    FileKind("UTF-32 text", b"\x00\x00\xfe\xff", (), _UTF_32_REMEDY),
    FileKind("UTF-16 text", b"\xff\xfe", (), _UTF_16_REMEDY),
    FileKind("UTF-16 text", b"\xfe\xff", (), _UTF_16_REMEDY),
)
_WEB_PAGE = FileKind("a web page", b"", (), "Download the file again; the server sent a page.")
_WEB_PAGE_STARTS = (b"<!doctype html", b"<html")


def kind_of_content(head: bytes, path: str) -> FileKind | None:
    """Return the kind of a file by its first bytes; None for possible text, also with a BOM.

    Args:
        head: the first bytes, 512 if the file has as many.
        path: the file; its name decides between kinds with the same first bytes.
    """
    if head.startswith(_TAR_MAGIC, _TAR_START):
        return _KINDS[0]
    if head.lstrip().lower().startswith(_WEB_PAGE_STARTS):
        return _WEB_PAGE
    matching = [kind for kind in _KINDS if kind.magic and head.startswith(kind.magic)]
    suitable = [kind for kind in matching if path.lower().endswith(kind.suffixes)]
    # Without a suitable name, the last kind counts: a zip archive instead of a spreadsheet.
    return next(iter(suitable or matching[-1:]), None)


def kind_of_encoding(head: bytes) -> FileKind | None:
    """Return the kind of a text that begins with a byte order mark, but is not UTF-8."""
    return next((kind for kind in _ENCODED_KINDS if head.startswith(kind.magic)), None)


def kind_of_name(path: str) -> FileKind | None:
    """Return the kind that the name of a file shows; None if it may be text."""
    return next((kind for kind in _KINDS if path.lower().endswith(kind.suffixes)), None)


def conversion(kind: FileKind, path: str) -> str:
    """Return how to make a file readable."""
    suffix = next((end for end in kind.suffixes if path.lower().endswith(end)), "")
    output = path[: len(path) - len(suffix)]
    return kind.remedy.format(file=shlex.quote(path), output=shlex.quote(output))
