"""Settings of Sphinx for the documentation site, which `make docs` builds.

The source folder is the repository, so that Sphinx also checks the links to pages outside of docs/.
"""

import inspect
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from regard.core.provenance import package_version

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
# Imports the layers without TensorFlow; their reference is the same on every backend.
os.environ["KERAS_BACKEND"] = "numpy"
# The components import TFX, which logs hundreds of lines.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
for _name in ("absl", "apache_beam"):
    logging.getLogger(_name).setLevel(logging.ERROR)

project = "Regard"
author = "The authors of Regard"
copyright = "the authors of Regard, Apache-2.0"
version = release = package_version() or "latest"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    *("site_code", "site_maps", "site_math", "site_pages", "site_search"),
]
root_doc = "docs/index"
_PAGES = {"docs", "benchmarks", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
include_patterns = ["*.md", "docs/**.md", "docs/*.ipynb", "benchmarks/**.md"]
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.name not in _PAGES),
    "benchmarks/peers/.venv",
]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # `_insert_generated` converts notebooks

# Headings have the anchors of GitHub, so that links work in both places.
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
html_math_renderer = "mathml"  # of `site_math`

smartquotes = False  # they would change "--option" in a sentence
highlight_language = "text"  # outputs of commands are not Python
default_role = "literal"  # docstrings write code between single quotes, too
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False  # Keras describes `build` and `call` of any layer
autodoc_default_options = {"members": True}
# Imported by what joins Regard to TFX, in half a minute.
autodoc_mock_imports = ["apache_beam", "tensorflow_model_analysis", "tensorflow_transform"]
add_module_names = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"Regard {release}"
html_theme_options = {"light_logo": "logo-light.svg", "dark_logo": "logo-dark.svg"}
html_favicon = "_static/logo-light.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "start.html"}
templates_path = ["_templates"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # `site_search` shows excerpts
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "sidebar/versions.html"),
        *("sidebar/scroll-start.html", "sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
# Where the site is published; CONTRIBUTING.md describes the variables.
html_context = {"docs_versions": os.environ.get("REGARD_DOCS_VERSIONS", "")}
if _repository := os.environ.get("REGARD_DOCS_REPOSITORY"):
    _is_template = "{filename}" in _repository
    html_theme_options |= {
        "source_edit_link" if _is_template else "source_repository": _repository,
        "source_branch": os.environ.get("REGARD_DOCS_BRANCH", "main"),
        "source_directory": "",
    }

_MARK = "<!-- generated: {} -->"
# A link to an object in the Python API, whose anchor only exists on the site.
_OBJECT = re.compile(r"\[`([^`\]]+)`\]\([\w./-]*python\.md#(regard\.[\w.]+)\)")
_CODE = re.compile("(``.*?``)")
_SCROLLABLE = re.compile('<pre(?=>)|<div class="(?:math|table-wrapper[^"]*)"')


def _insert_generated(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace a mark in a page with the reference that it names, and a notebook with a page."""
    import reference_pages
    import site_pages

    if app.env.doc2path(page).suffix == ".ipynb":
        cells = json.loads(source[0])["cells"]
        source[0] = "\n\n".join(part for cell in cells for part in _convert_cell(cell))
        link = f"{{download}}`Download this notebook <{page.rpartition('/')[2]}.ipynb>`"
        source[0] = re.sub(r"\n\n", f"\n\n{link}\n\n", source[0], count=1)
    for name, generate in reference_pages.GENERATORS.items():
        if (mark := _MARK.format(name)) in source[0]:
            source[0] = source[0].replace(mark, generate())
            app.env.note_reread()
    source[0] = _OBJECT.sub(r"{py:obj}`\1 <\2>`", source[0])
    if page == root_doc:
        source[0] = site_pages.replace_list(source[0])


def _convert_cell(cell: dict[str, Any]) -> Iterator[str]:
    """Return the source of a cell and its outputs as Markdown."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"````python\n{source}\n````"
    for output in cell["outputs"]:
        data = output.get("data", {"text/plain": output.get("text", "")})
        if "image/png" in data:
            yield f"![Output of the code above](data:image/png;base64,{data['image/png'].strip()})"
        elif "text/html" in data:
            yield f"````{{raw}} html\n{''.join(data['text/html'])}\n````"
        else:
            yield f"````text\n{''.join(data['text/plain'])}\n````"


def _escape(app: Sphinx, kind: str, name: str, *rest: Any) -> None:
    """Escape the bars of formulas in a docstring, and stress the paragraph with the shapes."""
    lines: list[str] = rest[-1]
    for number, line in enumerate(lines):
        parts = _CODE.split(line)
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = re.sub(r"^(\s*)Shapes: ", r"\1**Shapes**: ", "".join(parts))


def _signature(app: Sphinx, kind: str, name: str, value: Any, *rest: Any) -> Any:
    """Return the arguments of a layer's constructor, which Keras hides."""
    if kind != "class" or "__init__" not in vars(value):
        return None
    parameters = list(inspect.signature(value.__init__).parameters.values())[1:]
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return str(inspect.Signature(plain)), None


def _make_accessible(app: Sphinx, page: str, template: str, context: Any, *rest: Any) -> None:
    """Let keys scroll code and tables."""
    if "body" in context:
        context["body"] = _SCROLLABLE.sub(r'\g<0> tabindex="0"', context["body"])


def _write_schemas(app: Sphinx, error: Exception | None) -> None:
    """Write the JSON schemas of configurations into the site, under the version of Regard."""
    from regard.models import tasks
    from regard.pipeline.compare.matrix import comparison_schema
    from regard.pipeline.config.reference import json_schema

    folder = Path(app.outdir, "schemas", release)
    folder.mkdir(parents=True, exist_ok=True)
    schemas = {task: json_schema(task) for task in tasks.TASKS.own}
    for name, schema in {**schemas, "comparison": comparison_schema()}.items():
        text = json.dumps(schema, ensure_ascii=False)
        Path(folder, f"regard.{name}.schema.json").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the generated pages and files."""
    app.connect("source-read", _insert_generated)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _escape, priority=1)  # before Napoleon
    app.connect("build-finished", _write_schemas)
    app.connect("html-page-context", _make_accessible, priority=900)  # after furo
