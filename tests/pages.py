"""The visible text of HTML pages."""

import html
import re


def plain(text: str) -> str:
    """The text of a page without markup, styles and scripts."""
    bare = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())
