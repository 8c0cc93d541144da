"""From facts to one page of HTML that needs nothing else: no network, no other file."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import serving
from components.pictures import style
from components.reporter import attention, examples, figures, svg, tables, words
from components.reporter.facts import Facts
from components.reporter.ranking import ranked

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).with_name("page")
# Looks are drawn, and all is dressed, as on the page that serves a model.
_SERVED = Path(serving.__file__).parent / "web" / "page"
_SCRIPTS = (_SERVED / "dom.js", _SERVED / "looks.js", _FOLDER / "report.js")
_STYLES = (_SERVED / "style.css", _FOLDER / "report.css")
_IMPORT = re.compile(r"^import\s.*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export\s+", re.MULTILINE)
DRAWING = {"font.size": 9, "axes.edgecolor": svg.INK, "grid.color": svg.LINES}


def render(facts: Facts) -> str:
    """The page of a run."""
    looks = attention.measure(facts)
    with style(DRAWING):
        drawn = [
            {
                "name": picture.name,
                "section": picture.section,
                "title": picture.title,
                "svg": svg.inline(picture),
                "header": picture.header,
                "rows": picture.rows,
            }
            for picture in figures.draw(facts, looks)
        ]
    groups = examples.groups(facts, ranked(facts))
    contract = facts.predicted.get("contract", {})
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            about=facts.about,
            headline=words.headline(facts),
            facts=facts,
            figures=drawn,
            groups=groups,
            data=_json(_drawn(groups, contract)),
            scores=tables.scores(facts),
            slices=tables.slices(facts),
            degenerate=tables.degenerate(facts),
            effort=tables.effort(facts),
            nodes=tables.nodes(facts),
            rows=tables.rows(facts),
            findings=tables.findings(facts),
            drift=tables.drift(facts),
            repairs=tables.repairs(facts),
            origin=tables.origin(facts),
            looked=attention.summary(looks) if looks else [],
            config=_yaml(facts.about.config),
            icon=_icon(),
            css=_css(),
            script=script(),
        )
    )


@functools.cache
def script() -> str:
    """All scripts as one module: what each gives is there for those behind it."""
    parts = [path.read_text(encoding="utf-8") for path in _SCRIPTS]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)


@functools.cache
def _css() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in _STYLES)


@functools.cache
def _icon() -> str:
    return (_SERVED / "icon.svg").read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["whole"] = Markup  # what is markup already: our own drawings, scripts, styles
    return made


def _drawn(groups: Sequence[Mapping[str, Any]], contract: Mapping[str, Any]) -> dict[str, Any]:
    """What the scripts draw from: the contract's part about looks, and each card's look."""
    names = ("inputs", "answer", "answer_kind", "looks")
    return {
        "contract": {name: contract.get(name) for name in names},
        "looks": [card["look"] for group in groups for card in group["cards"]],
    }


def _json(value: Any) -> str:
    """JSON that can stand inside a ``script`` element, whatever its texts hold."""
    # A number that is none would be no JSON to a browser, and end all scripts.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _yaml(config: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True) if config else ""
