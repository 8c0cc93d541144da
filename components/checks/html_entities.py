"""The check ``html_entities``."""

import re
from collections.abc import Iterator
from html.entities import html5
from typing import ClassVar

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]*);")


class HtmlEntitiesCheck(RowCheck):
    """Rows with HTML entities, for example &quot; for a quotation mark."""

    summary: ClassVar[str] = "contain HTML entities"
    remedy: ClassVar[str] = "Replace them in the files, for example with Python's html.unescape"

    limit: Share = 0.01

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return any(find_entity(text) for text in row.all)

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        for name, texts in row.by_name.items():
            entity = find_entity(" ".join(texts))
            if entity:
                yield f"{name} contains {entity}"


def find_entity(text: str) -> str | None:
    """Return the first HTML entity of a text, such as ``&quot;``; None if it has none."""
    if "&" not in text:
        return None
    for match in _ENTITY.finditer(text):
        name = _NAMED.fullmatch(match[0])
        if name is None or f"{name[1]};" in html5:
            return match[0]
    return None
