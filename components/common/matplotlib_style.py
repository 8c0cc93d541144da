"""The style of all Matplotlib figures, and how they are saved."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colour-blind-safe palette of Okabe and Ito, with grey instead of their yellow, which is too
# light for a line on white.
COLOURS = (
    "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#7A7A7A",
)  # fmt: skip
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7A7A7A"
# Matplotlib's default font has no Chinese, Japanese or Korean; the first installed one is used.
FONTS = ["DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Micro Hei",
         "PingFang SC", "Microsoft YaHei", "Noto Sans", "Arial Unicode MS"]  # fmt: skip
_STYLE: dict[Any, Any] = {
    "font.family": FONTS,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "svg.hashsalt": "regard",  # equal figures give equal files
}


@contextlib.contextmanager
def style(changes: Mapping[str, Any]) -> Iterator[None]:
    """Apply the style to figures that are drawn and saved in the block.

    Args:
        changes: Matplotlib settings by name.
    """
    import matplotlib

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    settings: Any = {**_STYLE, **changes}  # Matplotlib types the names as literals
    with matplotlib.rc_context(settings):
        yield


def save(figure: Figure, path: Path) -> None:
    """Save a figure atomically as SVG; characters without a font are drawn as boxes."""
    with atomic_path(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*missing from font")
        # No date, so that equal figures give equal files.
        figure.savefig(temporary, format="svg", metadata={"Date": None})
