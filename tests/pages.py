"""Pages of HTML as people read them."""

from __future__ import annotations

import html
import re


def plain(text: str) -> str:
    """The words of a page, without its markup, styles and scripts."""
    bare = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())
