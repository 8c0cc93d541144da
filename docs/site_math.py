"""Write formulas as MathML, which browsers show without scripts from elsewhere."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# docutils would write the subscript of \tilde h_t below the letter and not next to it.
_ACCENT = re.compile(r"(\\(?:bar|hat|overleftarrow|tilde)\s*(?:\{\w+\}|\w))_")
_DOTS = re.compile(r"\\dots\b")  # unknown to docutils


def to_mathml(formula: str, is_block: bool = False) -> str:
    """Return a formula of LaTeX as MathML."""
    formula = _ACCENT.sub(r"\1{}_", _DOTS.sub(r"\\ldots", formula))
    return str(tex2mathml(formula, as_block=is_block))


def _write_math(writer: Any, node: nodes.Element) -> None:
    is_block = isinstance(node, nodes.math_block)
    formula = to_mathml(node.astext(), is_block)
    writer.body.append(f'<div class="math">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the formulas."""
    app.add_html_math_renderer("mathml", (_write_math, None), (_write_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
