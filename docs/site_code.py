"""Show the source of Python functions in a page.

A paragraph that is one link to functions of a Python file, such as
``[NumPy](../../tests/models/attention/reference.py#additive,softmax)``, becomes their code on the
site, with a caption that links to the file. In the repository it stays a link. A class, and a
method as ``Class.method``, can be named like a function.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

_DIRECTIVE = "site-code"
# A fenced block, which must not change, or a paragraph of one link with the blank line after it.
_BLOCK_OR_LINK = re.compile(
    r"""^[ ]*(?P<fence>`{3,}|~{3,}).*?^[ ]*(?P=fence)
    |(?<![^\n]\n)^\[(?P<title>[^\]\n]+)\]\((?P<target>[^)\s#]+\.py\#[\w.,]+)\)(?:\n\n|\n?\Z)""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def replace_links(source: str) -> str:
    """Replace each paragraph that is one link to functions by a directive with as many lines."""

    def replace(match: re.Match[str]) -> str:
        if match["target"] is None:
            return match[0]
        # The title may contain grave accents, but not in the first line of a fence of them.
        return f"~~~{{{_DIRECTIVE}}} {match['target']} {match['title']}\n~~~\n"

    return _BLOCK_OR_LINK.sub(replace, source)


def source_of(code: str, name: str) -> str:
    """Return the source of a function or class, with its decorators and without its indentation.

    Args:
        code: the source of the file.
        name: the name; that of a method after the name of its class and a dot.

    Raises:
        KeyError: the file does not define the name.
    """
    node: Any = ast.parse(code)
    for part in name.split("."):
        node = next((each for each in _definitions(node) if each.name == part), None)
        if node is None:
            raise KeyError(name)
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    lines = code.splitlines()[first - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


def _definitions(node: Any) -> Iterator[Any]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    yield from (child for child in node.body if isinstance(child, kinds))


class SiteCode(SphinxDirective):
    """The source of functions; the arguments are the target of the link and its text."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the code with a caption; an unknown function is a warning, which fails a build."""
        target, _, title = self.arguments[0].partition(" ")
        path, _, names = target.partition("#")
        relative, absolute = self.env.relfn2path(path)
        self.env.note_dependency(relative)
        try:
            code = Path(absolute).read_text(encoding="utf-8")
            sources = [source_of(code, name) for name in names.split(",")]
        except (OSError, KeyError) as error:
            message = "%s: the link %s names a function that does not exist: %s"
            where = (self.env.docname, self.lineno)
            _LOGGER.warning(message, self.env.docname, target, error, location=where)
            return []
        block = nodes.literal_block("", "\n\n\n".join(sources), language="python")
        link = addnodes.download_reference("", "", nodes.Text(relative), reftarget=path)
        text, messages = self.parse_inline(title)
        caption = nodes.caption("", "", *text, nodes.Text(", from "), link)
        wrapper = nodes.container("", caption, block, literal_block=True)
        wrapper["classes"].append("literal-block-wrapper")
        return [wrapper, *messages]


_LOGGER = logging.getLogger(__name__)


def _replace_links(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = replace_links(source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the code of pages."""
    app.add_directive(_DIRECTIVE, SiteCode)
    app.connect("source-read", _replace_links, priority=600)  # after conf.py converts notebooks
    return {"parallel_read_safe": True, "parallel_write_safe": True}
