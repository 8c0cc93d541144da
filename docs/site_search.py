"""Excerpts for the results of the search.

Sphinx would fetch each page that it finds to show some of its text, which a browser refuses for a
site that is opened from a folder. So the texts of all sections are one more script of the site,
which only the page of the search loads.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_MAX_CHARACTERS = 4_000  # of a section
_NO_TEXT = (nodes.title, nodes.raw, nodes.comment, addnodes.toctree, addnodes.desc_signature)
_SCRIPTS = ("search-texts.js", "search_excerpts.js")


def sections_of(doctree: nodes.document) -> Iterator[tuple[str, str, str]]:
    """Yield the anchor, the title and the text of each section and object of a page."""
    for node in doctree.findall(_is_part):
        if isinstance(node, nodes.section):
            title, parts = node.next_node(nodes.title), node.children
            yield node["ids"][0], title.astext() if title else "", _text(parts)
        else:
            signature = node.next_node(addnodes.desc_signature)
            if signature is not None and signature["ids"]:
                name = signature.get("fullname") or signature.astext()
                yield signature["ids"][0], name, _text(node.children)


def _is_part(node: nodes.Node) -> bool:
    return isinstance(node, nodes.section | addnodes.desc)


def _text(parts: list[nodes.Node]) -> str:
    """The text of parts, without sections and objects in them, which are parts themselves."""
    texts: list[str] = []
    stack = list(reversed(parts))
    while stack:
        node = stack.pop()
        if isinstance(node, _NO_TEXT) or _is_part(node):
            continue
        if isinstance(node, nodes.TextElement):
            leaves = node.findall(nodes.Text)
            texts.append("".join(leaf for leaf in leaves if not isinstance(leaf.parent, _NO_TEXT)))
        else:
            stack.extend(reversed(node.children))
    return " ".join(" ".join(texts).split())[:_MAX_CHARACTERS]


def _write_texts(app: Sphinx, error: Exception | None) -> None:
    """Write the texts of all pages as a script, because a page in a folder cannot load JSON."""
    if error is not None or app.builder.format != "html":
        return
    pages = {
        page: list(sections_of(app.env.get_doctree(page))) for page in sorted(app.env.found_docs)
    }
    text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    file = Path(app.outdir, "_static", _SCRIPTS[0])
    file.write_text(f"const SEARCH_TEXTS = {text};\n", encoding="utf-8")


def _add_scripts(app: Sphinx, page: str, template: str, context: Any, *rest: Any) -> None:
    if page == "search":
        for name in _SCRIPTS:
            app.add_js_file(name, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the excerpts."""
    app.connect("html-page-context", _add_scripts)
    app.connect("build-finished", _write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
