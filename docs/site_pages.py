"""Turn the list of pages in docs/index.md into the navigation of the site.

The list is a section of links, so that it can be read in the repository too. Each of its headings
becomes a group in the sidebar, which folds.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

HEADING = "## All pages"
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")


def replace_list(source: str) -> str:
    """Replace the list of pages, which ends the source of the start page, by tables of contents."""
    text, _, pages = source.partition(HEADING)
    return "\n".join([text, *_toctrees(pages)])


def _toctrees(text: str) -> Iterator[str]:
    """Yield the lines of a hidden table of contents for each heading."""
    for group in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        caption, _, links = group.partition("\n")
        yield from (":::{toctree}", f":caption: {caption}", ":hidden:", ":titlesonly:", "")
        for title, path in _LINK.findall(links):
            yield f"{title} <{Path(path).with_suffix('').as_posix()}>"
        yield from (":::", "")


def fold(tree: str) -> str:
    """Let the groups of the navigation fold; only that of the current page is open."""
    soup = BeautifulSoup(tree, "html.parser")
    for caption in soup.find_all("p", class_="caption"):
        pages = caption.find_next_sibling("ul")
        group = soup.new_tag("details")
        if "current" in pages.get("class", []):
            group["open"] = ""
        summary = soup.new_tag("summary")
        summary.string = caption.get_text()
        caption.replace_with(group)
        group.extend([summary, pages.extract()])
    return str(soup)


def _fold_navigation(app: Sphinx, page: str, template: str, context: Any, *rest: Any) -> None:
    if context.get("furo_navigation_tree"):
        context["furo_navigation_tree"] = fold(context["furo_navigation_tree"])
    if page == app.config.root_doc:
        context["furo_hide_toc"] = True


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the navigation."""
    app.connect("html-page-context", _fold_navigation, priority=800)  # after furo
    return {"parallel_read_safe": True, "parallel_write_safe": True}
