"""Characters that XML forbids, so that they make one text invalid and not the whole file.

A parser of XML stops at a reference such as ``&#x1F;`` and at a control character. So they are
replaced by a reference to U+FDD0, which stands for no character, and their code. This is text in
every encoding that extends ASCII.
"""

import re
from collections.abc import Iterable, Iterator

_MARK = "\ufdd0"
# A reference, or control characters as they are: a run of them gets one mark.
_SUSPECT = re.compile(rb"&#(?:x([0-9A-Fa-f]{1,30})|([0-9]{1,30}));|([\x00-\x08\x0b\x0c\x0e-\x1f]+)")
# The beginning of a reference whose end is in the next block.
_OPEN_REFERENCE = re.compile(rb"&(?:#(?:x[0-9A-Fa-f]{0,30}|[0-9]{0,30}))?\Z")
_MAX_REFERENCE = 34
# The mark is a reference in the text, and the characters of one in CDATA.
_MARKED = re.compile(f"(?:{_MARK}|&#xFDD0;)(?:([0-9A-F]+);)?")


def mark_forbidden(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks of an XML file with marks in place of the characters that XML forbids.

    Args:
        blocks: the content of the file, in an encoding that extends ASCII.
    """
    rest = b""
    for block in blocks:
        data = rest + block
        match = _OPEN_REFERENCE.search(data, max(0, len(data) - _MAX_REFERENCE))
        end = match.start() if match else len(data)
        data, rest = data[:end], data[end:]
        if data:
            yield _SUSPECT.sub(_mark, data)
    if rest:
        yield rest


def find_forbidden(text: str) -> str | None:
    """Return which forbidden character a text of a marked file had; None if it had none."""
    match = _MARKED.search(text)
    if match is None:
        return None
    return f"it contains U+{match[1] or 'FDD0'}, which XML forbids"


def _mark(match: re.Match[bytes]) -> bytes:
    hexadecimal, decimal, control = match.groups()
    code = control[0] if control else int(hexadecimal, 16) if hexadecimal else int(decimal)
    is_allowed = code in (0x9, 0xA, 0xD) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE
    if is_allowed or 0x10000 <= code < 0x110000:
        return match[0]
    return b"&#xFDD0;%04X;" % min(code, 0xFFFFFFFF)
