"""What the pages of the reporter share: templates, styles, scripts and embedded data."""

import functools
import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from regard.components.reporter.tables import FILTERS
from regard.serving import web

_FOLDER = Path(__file__).with_name("page")
# Attention maps and styles are shared with the page of the server.
_STYLES = (*(web.PAGE_FOLDER / name for name in web.STYLES), _FOLDER / "report.css")
_SCRIPTS = (
    *(web.PAGE_FOLDER / name for name in ("dom.js", "attention.js", "heads.js")),
    *(_FOLDER / name for name in ("theme.js", "maps.js")),
)


def render_page(name: str, **values: object) -> str:
    """Render a page without external resources.

    Args:
        name: the template ``NAME.html.jinja`` and the script ``NAME.js`` of the page.
        values: the values of the template; it also has ``icon``, ``css`` and ``script``.
    """
    return (
        _environment()
        .get_template(f"{name}.html.jinja")
        .render(
            **values,
            icon=_read(web.PAGE_FOLDER / "icon.svg"),
            css="\n".join(map(_read, _STYLES)),
            script=bundle_scripts(name),
        )
    )


@functools.cache
def bundle_scripts(name: str) -> str:
    """Return all scripts of a page as one module, each after those that it uses."""
    return web.bundle_scripts(*_SCRIPTS, _FOLDER / f"{name}.js")


def script_json(value: object) -> str:
    """Return JSON that can stand inside a ``script`` element, whatever its texts contain."""
    # NaN is not JSON: the browser would reject all of it.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@functools.cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.filters["trusted"] = Markup  # our own drawings, scripts and styles
    return environment
