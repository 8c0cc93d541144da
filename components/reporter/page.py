"""The report as one HTML page without external resources: no network, no further files."""

from __future__ import annotations

import functools
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common.matplotlib_style import BLUE, GREY, ORANGE, style
from regard.components.common.yaml_text import to_yaml
from regard.components.reporter import attention_statistics, tables
from regard.components.reporter.examples import CardGroup, make_cards, select_rows
from regard.components.reporter.figures import ReportFigure, draw_figures
from regard.components.reporter.run_facts import RunFacts
from regard.components.reporter.summary_text import summarize_run
from regard.serving import web

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).with_name("page")
# Attention maps and styles are shared with the page of the server.
_SERVER_PAGE = web.PAGE_FOLDER
_SCRIPTS = (_SERVER_PAGE / "dom.js", _SERVER_PAGE / "attention.js", _FOLDER / "report.js")
_STYLES = (_SERVER_PAGE / "style.css", _FOLDER / "report.css")

_TEXT_COLOUR, _GRID_COLOUR = "#000000", "#DDDDDD"
DRAWING_STYLE = {
    "font.size": 9,
    "axes.edgecolor": _TEXT_COLOUR,
    "grid.color": _GRID_COLOUR,
}
# Figures use the colours of the page's theme, light or dark.
_CSS_COLOURS = {
    _TEXT_COLOUR: "var(--ink)",
    _GRID_COLOUR: "var(--line)",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    GREY: "var(--soft)",
    "#FFFFFF": "var(--card)",
}
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HEX_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_LOCAL_URL = re.compile(r"url\(#([^)]+)\)")


def render(facts: RunFacts) -> str:
    """Render the page of a run."""
    statistics = attention_statistics.measure_attention(facts)
    with style(DRAWING_STYLE):
        figures = [
            {**vars(figure), "svg": inline_svg(figure)}
            for figure in draw_figures(facts, statistics)
        ]
    groups = make_cards(facts, select_rows(facts))
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            info=facts.info,
            summary=summarize_run(facts),
            facts=facts,
            figures=figures,
            groups=groups,
            attention_data=_script_json(_attention_json(facts, groups)),
            scores=tables.score_table(facts),
            slices=tables.slice_tables(facts),
            output_checks=tables.output_checks(facts),
            training=tables.training_facts(facts),
            nodes=tables.node_table(facts),
            splits=tables.split_table(facts),
            data_checks=tables.data_checks(facts),
            drift=tables.drift_table(facts),
            read_problems=tables.read_problems(facts),
            provenance=tables.provenance_facts(facts),
            attention=attention_statistics.summarize(statistics) if statistics else [],
            config=to_yaml(dict(facts.info.config)) if facts.info.config else "",
            icon=_read(_SERVER_PAGE / "icon.svg"),
            css="\n".join(map(_read, _STYLES)),
            script=bundle_scripts(),
        )
    )


@functools.cache
def bundle_scripts() -> str:
    """All scripts as one module, in an order in which each can use those before it."""
    return web.bundle_scripts(*_SCRIPTS)


@functools.cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["trusted"] = Markup  # our own drawings, scripts and styles
    return environment


def _attention_json(facts: RunFacts, groups: Sequence[CardGroup]) -> dict[str, object]:
    """The data of the attention maps: the relevant part of the contract, and each card's data."""
    names = ("inputs", "answer", "answer_kind", "looks")
    return {
        "contract": {name: facts.contract.get(name) for name in names},
        "maps": [card.attention for group in groups for card in group.cards],
    }


def _script_json(value: object) -> str:
    """JSON that can stand inside a ``script`` element, whatever its texts contain."""
    # NaN is not JSON: the browser would reject all of it.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def inline_svg(figure: ReportFigure) -> str:
    """The figure as an ``svg`` element; requires ``matplotlib_style.style``.

    Its ids begin with the figure's name, so that several figures fit on one page.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(buffer.getvalue())
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    elements = {element.get("id"): element for element in root.iter() if element.get("id")}
    for gid, texts in figure.tooltips.items():
        _add_tooltips(elements[gid], texts)
    for element in root.iter():
        _adapt(element, figure.name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-label", f"{figure.title}; see the table below for the numbers")
    return ET.tostring(root, encoding="unicode")


def _add_tooltips(group: ET.Element, texts: Sequence[str]) -> None:
    """Add a title to each mark of a line, or to the path of a bar."""
    marks = list(group.iter(f"{{{_SVG}}}use")) or list(group.iter(f"{{{_SVG}}}path"))[:1]
    for mark, text in zip(marks, texts, strict=False):
        ET.SubElement(mark, f"{{{_SVG}}}title").text = text


def _adapt(element: ET.Element, name: str) -> None:
    """Make ids unique, and replace colours by those of the page."""
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.get('id')}")
    link = element.get(f"{{{_XLINK}}}href")
    if link:
        del element.attrib[f"{{{_XLINK}}}href"]
        element.set("href", f"#{name}-{link.removeprefix('#')}")
    for key in ("style", "fill", "stroke"):
        if key in element.attrib:
            element.set(key, _HEX_COLOUR.sub(_css_colour, element.attrib[key]))
    if "clip-path" in element.attrib:
        element.set("clip-path", _LOCAL_URL.sub(rf"url(#{name}-\1)", element.attrib["clip-path"]))
    if element.tag == f"{{{_SVG}}}text" and "fill" not in element.get("style", ""):
        element.set("style", f"{element.get('style', '')}; fill: var(--ink)")
    if element.tag == f"{{{_SVG}}}style":
        element.text = ""


def _css_colour(match: re.Match[str]) -> str:
    return _CSS_COLOURS.get(match.group().upper(), match.group())
