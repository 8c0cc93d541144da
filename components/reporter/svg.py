"""A matplotlib figure as a part of a page: in the page's colours, with words at its marks."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from components.pictures import BLUE, GREY, ORANGE
from components.reporter.figures import Picture

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
INK, LINES = "#000000", "#DDDDDD"
# What is drawn in these colours has those of the page, light or dark.
_COLOURS = {
    INK: "var(--ink)",
    LINES: "var(--line)",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    GREY: "var(--soft)",
    "#FFFFFF": "var(--card)",
}
_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
_OWN = re.compile(r"url\(#([^)]+)\)")


def inline(picture: Picture) -> str:
    """The figure as an ``svg`` element; call it inside `components.pictures.style`.

    Its identifiers begin with the picture's name, so that several can stand on one page.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        picture.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _LINK)
    root = ET.fromstring(buffer.getvalue())
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    parts = {part.get("id"): part for part in root.iter() if part.get("id")}
    for gid, texts in picture.told.items():
        _tell(parts[gid], texts)
    for part in root.iter():
        _change(part, picture.name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-label", f"{picture.title}; the numbers are in the table below")
    return ET.tostring(root, encoding="unicode")


def _tell(group: ET.Element, texts: Sequence[str]) -> None:
    """Gives each mark of a group its words: the marks of a line, or the one path of a bar."""
    marks = list(group.iter(f"{{{_SVG}}}use")) or list(group.iter(f"{{{_SVG}}}path"))[:1]
    for mark, text in zip(marks, texts, strict=False):
        ET.SubElement(mark, f"{{{_SVG}}}title").text = text


def _change(part: ET.Element, name: str) -> None:
    if "id" in part.attrib:
        part.set("id", f"{name}-{part.get('id')}")
    link = part.get(f"{{{_LINK}}}href")
    if link:
        del part.attrib[f"{{{_LINK}}}href"]
        part.set("href", f"#{name}-{link.removeprefix('#')}")
    for key in ("style", "fill", "stroke"):
        if key in part.attrib:
            part.set(key, _HEX.sub(_colour, part.attrib[key]))
    if "clip-path" in part.attrib:
        part.set("clip-path", _OWN.sub(rf"url(#{name}-\1)", part.attrib["clip-path"]))
    if part.tag == f"{{{_SVG}}}text" and "fill" not in part.get("style", ""):
        part.set("style", f"{part.get('style', '')}; fill: var(--ink)")
    if part.tag == f"{{{_SVG}}}style":
        part.text = ""


def _colour(found: re.Match[str]) -> str:
    return _COLOURS.get(found.group().upper(), found.group())
