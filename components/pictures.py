"""How every picture that is drawn with matplotlib looks, and how it is written."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import UserError
from components.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
# Okabe and Ito's colours, which all kinds of eyes tell apart; grey for their yellow, which is
# too light for a line on white.
COLOURS = (
    "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#7A7A7A",
)  # fmt: skip
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7A7A7A"
# Matplotlib's own font has no Chinese, Japanese or Korean; the first of these that is there has.
FONTS = ["DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Micro Hei",
         "PingFang SC", "Microsoft YaHei", "Noto Sans", "Arial Unicode MS"]  # fmt: skip
FONTS_REMEDY = (
    "Some signs are drawn as boxes: no font here has them. The packages fonts-noto-cjk and "
    "fonts-noto-core, or what your system calls them, have."
)
# Without the date, which would make another file of the same figures.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
}
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
    "svg.hashsalt": "regard",  # the same figures give the same file
}


@contextlib.contextmanager
def style(changes: Mapping[str, Any]) -> Iterator[None]:
    """What is drawn and written while the block runs looks alike.

    Args:
        changes: of matplotlib's settings, by their names.
    """
    import matplotlib

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    both: Any = {**_STYLE, **changes}  # the names that there are, are a type of matplotlib's
    with matplotlib.rc_context(both):
        yield


def check_path(path: Path) -> None:
    """Raises a ``UserError`` where no picture of this name can be drawn."""
    if path.suffix.removeprefix(".").lower() not in FORMATS:
        raise UserError(
            f"{path.suffix or 'no ending'} is no kind of picture that can be drawn",
            where=str(path),
            remedy=f"Give a name that ends with .{', .'.join(FORMATS)}.",
        )
    if not path.absolute().parent.is_dir():
        raise UserError("there is no such folder", where=str(path.absolute().parent))


def save(figure: Figure, path: Path) -> bool:
    """Writes a figure into a file, whose ending says what it is, as a whole or not at all.

    Returns:
        Whether there was a font for every sign; the others are boxes. See `FONTS_REMEDY`.
    """
    kind = path.suffix.removeprefix(".").lower()
    with atomic_path(path) as temporary, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure.savefig(temporary, format=kind, dpi=150, metadata=_METADATA[kind])
    boxes = [warning for warning in told if "missing from font" in str(warning.message)]
    for other in told:
        if other not in boxes:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return not boxes
