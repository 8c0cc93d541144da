"""The report as one HTML page without external resources: no network, no further files."""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.components.common.matplotlib_style import BLUE, GREY, ORANGE, style
from regard.components.reporter import difference_page
from regard.components.reporter.attention_statistics import measure_attention
from regard.components.reporter.examples import Card, make_cards
from regard.components.reporter.figures import ReportFigure, draw_figures
from regard.components.reporter.run_facts import RunFacts
from regard.components.reporter.summary_text import summarize_run
from regard.components.reporter.templates import render_page, script_json
from regard.core.files import atomic_write
from regard.core.yaml_text import to_yaml

_TEXT_COLOUR, _GRID_COLOUR = "#000000", "#DDDDDD"
DRAWING_STYLE = {"font.size": 9, "axes.edgecolor": _TEXT_COLOUR, "grid.color": _GRID_COLOUR}
# Figures use the colours of the page's theme, light or dark.
_CSS_COLOURS = {
    _TEXT_COLOUR: "var(--ink)",
    _GRID_COLOUR: "var(--line)",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    GREY: "var(--soft)",
    "#FFFFFF": "var(--card)",
}
_SVG = "http://www.w3.org/2000/svg"
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_HEX_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_REFERENCE = re.compile(r'(\bid="|\bhref="#|\burl\(#)')  # an id, or what refers to one


def write(path: Path, facts: RunFacts, names: Sequence[str] = ()) -> None:
    """Write the page of a run, and next to it a page about the differences of two models.

    Args:
        path: the file of the report, replaced atomically.
        facts: the run.
        names: the names of both models, see `difference_page.render`.
    """
    differences = difference_page.render(facts, names)
    other = difference_page.difference_page_path(path)
    if differences:
        atomic_write(other, differences)
    else:  # of an earlier report of the same name
        other.unlink(missing_ok=True)
    atomic_write(path, render(facts, other.name if differences else ""))


def render(facts: RunFacts, differences: str = "") -> str:
    """Render the page of a run.

    Args:
        facts: the run.
        differences: the file of the page about the differences of two models; empty: none.
    """
    attention = measure_attention(facts)
    with style(DRAWING_STYLE):
        figures = [
            {**vars(figure), "svg": inline_svg(figure)} for figure in draw_figures(facts, attention)
        ]
    groups = make_cards(facts)
    return render_page(
        "report",
        run=facts.run,
        facts=facts,
        summary=summarize_run(facts),
        figures=figures,
        groups=groups,
        attention_data=script_json(_attention_json(facts, groups)),
        attention=attention,
        differences=differences,
        config=to_yaml(dict(facts.config)) if facts.config else "",
    )


def _attention_json(facts: RunFacts, groups: Mapping[str, Sequence[Card]]) -> dict[str, object]:
    """The data of the attention maps: the relevant part of the contract, and each card's data."""
    names = ("inputs", "answer", "answer_kind", "looks", "heads")
    return {
        "contract": {name: facts.contract.get(name) for name in names},
        "maps": [card.attention for cards in groups.values() for card in cards],
    }


def inline_svg(figure: ReportFigure) -> str:
    """The figure as an ``svg`` element; requires ``matplotlib_style.style``.

    Its ids begin with the figure's name, so that several figures fit on one page.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.figure.savefig(buffer, format="svg", transparent=True, metadata=_NO_METADATA)
    text = _REFERENCE.sub(rf"\1{figure.name}-", buffer.getvalue()).replace("xlink:href", "href")
    ET.register_namespace("", _SVG)
    text = _HEX_COLOUR.sub(lambda match: _CSS_COLOURS.get(match[0].upper(), match[0]), text)
    root = ET.fromstring(text)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": f"{figure.title}; see the table below for the numbers",
    }
    for style_element in root.iter(f"{{{_SVG}}}style"):
        style_element.text = ""  # it would apply to the whole page
    elements = {element.get("id"): element for element in root.iter()}
    for gid, texts in figure.tooltips.items():
        _add_tooltips(elements[f"{figure.name}-{gid}"], texts)
    return ET.tostring(root, encoding="unicode")


def _add_tooltips(group: ET.Element, texts: Sequence[str]) -> None:
    """Add a title to each mark of a line, or to the path of a bar."""
    marks = list(group.iter(f"{{{_SVG}}}use")) or list(group.iter(f"{{{_SVG}}}path"))[:1]
    for mark, text in zip(marks, texts, strict=False):
        ET.SubElement(mark, f"{{{_SVG}}}title").text = text
