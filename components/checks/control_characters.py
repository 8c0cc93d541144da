"""The check ``control_characters``."""

import re
from collections.abc import Iterator
from typing import ClassVar

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share

# C0 except tab and line ends, C1, soft hyphen, zero-width characters, direction marks, line and
# paragraph separators, the replacement character, and private use.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffd\ue000-\uf8ff\U000e0001-\U000e007f\U000f0000-\U0010ffff]"
    # A carriage return without a line feed: lines of another file ended with it.
    "|\r(?!\n)"
    # A joiner is part of the orthography of Persian and Hindi, and of emoji; U+200D also at the end
    # of a word, as in Malayalam.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|\u200c(?![^\x00-\x7f])"
)
# The flags of England, Scotland and Wales are a black flag and a word in tags.
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]+\U000e007f")


class ControlCharactersCheck(RowCheck):
    """Rows with invisible characters: control, zero-width, directional and private-use characters,
    line separators, U+FFFD."""

    summary: ClassVar[str] = "contain invisible control characters"

    limit: Share = 0.01

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return any(control_characters(text) for text in row.all)

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        for name, texts in row.by_name.items():
            controls = dict.fromkeys(control_characters(" ".join(texts)))
            if controls:
                codes = ", ".join(f"U+{ord(character):04X}" for character in controls)
                yield f"{name} contains {codes}"


def control_characters(text: str) -> list[str]:
    """Return the invisible control characters of a text in their order."""
    # Of the characters of _CONTROL, Python counts only these two as printable. A twentieth of the
    # time of a search.
    if text.isprintable() and "\ufffc" not in text and "\ufffd" not in text:
        return []
    controls = _CONTROL.findall(text)
    return _CONTROL.findall(_FLAG.sub("", text)) if controls else controls
