"""Show pictures of attention as maps to explore.

A picture in a page, such as ``maps/additive.png``, becomes a map on the site if there is a file
``maps/additive.json`` with its data, which `attention_map.py` writes. Maps are drawn by the scripts
of the report, and need no network.
"""

import functools
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from regard.serving import web

SCRIPTS = ("dom.js", "attention.js", "heads.js")
_FOLDER = Path(__file__).parent
_SCRIPT_NAME, _STYLE_NAME = "attention.js", "attention.css"


@functools.cache
def viewer_script() -> str:
    """The scripts of the maps as one, which a page from a local file can load too."""
    paths = (*(web.PAGE_FOLDER / name for name in SCRIPTS), _FOLDER / "site_maps.js")
    return f"(() => {{\n{web.bundle_scripts(*paths)}\n}})();\n"


@functools.cache
def viewer_style() -> str:
    """The styles of the maps, which apply to nothing else on a page."""
    style = (web.PAGE_FOLDER / "attention.css").read_text(encoding="utf-8")
    return f".attention-viewer {{\n{style}}}\n"


def figure_start() -> str:
    """The tag before the picture of a map."""
    return '<figure class="attention-viewer">'


def figure_end(data: str, caption: str) -> str:
    """The elements after the picture of a map: its data and its caption."""
    script = data.strip().replace("<", "\\u003c")
    return (
        f'<script type="application/json">{script}</script>'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _write_files(app: Sphinx) -> None:
    """Write the script and the styles into the site."""
    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _SCRIPT_NAME).write_text(viewer_script(), encoding="utf-8")
    (folder / _STYLE_NAME).write_text(viewer_style(), encoding="utf-8")


def _replace_pictures(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Add its data to each picture of a map."""
    for picture, file in list(_maps_in(app, doctree)):
        data = file.read_text(encoding="utf-8")
        picture["loading"] = "lazy"
        paragraph = picture.parent
        paragraph.remove(picture)
        figure = [
            nodes.raw("", figure_start(), format="html"),
            picture,
            nodes.raw("", figure_end(data, picture.get("alt", "")), format="html"),
        ]
        # A figure must not be inside a paragraph.
        paragraph.replace_self([*figure, *([paragraph] if paragraph.children else [])])


def _maps_in(app: Sphinx, doctree: nodes.document) -> Iterator[tuple[nodes.image, Path]]:
    """Yield the pictures of a page that have data, with the files of the data."""
    for picture in doctree.findall(nodes.image):
        file = Path(app.srcdir, picture["uri"]).with_suffix(".json")
        if picture["uri"].endswith(".png") and file.is_file():
            yield picture, file


def _add_files(app: Sphinx, page: str, template: str, context: Any, doctree: Any) -> None:
    """Load the script and the styles on pages with maps."""
    if doctree is not None and any(True for _ in doctree.findall(_is_map)):
        app.add_css_file(_STYLE_NAME)
        app.add_js_file(_SCRIPT_NAME, loading_method="defer")


def _is_map(node: nodes.Node) -> bool:
    return isinstance(node, nodes.raw) and node.astext() == figure_start()


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the maps."""
    app.connect("builder-inited", _write_files)
    app.connect("doctree-resolved", _replace_pictures)
    app.connect("html-page-context", _add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def compact_json(value: object, digits: int = 3) -> str:
    """JSON on one line, with rounded numbers."""
    return json.dumps(_round(value, digits), ensure_ascii=False, separators=(",", ":")) + "\n"


def _round(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        number = round(value, digits)
        return int(number) if number == int(number) else number
    if isinstance(value, dict):
        return {key: _round(each, digits) for key, each in value.items()}
    if isinstance(value, list):
        return [_round(each, digits) for each in value]
    return value
