"""Where a model looked, as a picture: beside its words, over its image, or among its points."""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.pictures import BLUE, GREY, ORANGE, save, style
from pipeline.typed_rows import TypedRow
from serving.saved_model import Answer

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = {
    "font.size": 9,
    "axes.grid": False,
    "axes.spines.top": True,
    "axes.spines.right": True,
}
_COLUMNS = 5  # of the panels of an image
_PANEL = 1.9  # inches
_LARGEST = 640  # pixels of an image


def numbered(path: Path, number: int) -> Path:
    """The file of a row, counted from 1: the first has the name that was given."""
    return path if number == 1 else path.with_stem(f"{path.stem}-{number}")


def write(row: TypedRow, answer: Answer, path: Path) -> bool:
    """Draws one row and its answer into a file, whose ending says what it is.

    Args:
        row: what was asked.
        answer: of the signature that tells most; its contract says what can be drawn.
        path: the file.

    Returns:
        Whether there was a font for every sign.
    """
    with style(STYLE):
        return save(draw(row, answer), path)


def draw(row: TypedRow, answer: Answer) -> Figure:
    """The picture of one row."""
    return drawn(answer.contract, {**row.inputs, **(row.asked or {})}, answer.outputs)


def drawn(
    contract: Mapping[str, Any], asked: Mapping[str, Any], outputs: Mapping[str, Any]
) -> Figure:
    """The picture of a question and what a model gave.

    Args:
        contract: the model's; it says what can be drawn.
        asked: the inputs by name, of images their bytes.
        outputs: by name, the weights as an array.
    """
    looks = contract["looks"]
    kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
    weights = outputs[looks["weights"]]
    kind = kinds.get(looks["columns"], "text")
    if kind == "image":
        return over_image(asked[looks["columns"]], outputs[looks["rows"]], weights)
    if kind == "points":
        return among_points(asked[looks["columns"]], outputs[looks["rows"]], weights)
    return beside_words(outputs[looks["columns"]], outputs[looks["rows"]], weights)


def beside_words(columns: Sequence[str], rows: Sequence[str], weights: np.ndarray) -> Figure:
    """A square for each pair of pieces, the darker the more: Bahdanau et al. 2015, figure 3.

    Args:
        columns: the pieces that were looked at.
        rows: those that were written.
        weights: ``[rows, columns]``, 0 to 1.
    """
    size = (1.6 + 0.27 * max(len(columns), 4), 1.2 + 0.24 * max(len(rows), 2))
    figure = _figure(size)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(columns)), [_shown(piece) for piece in columns], rotation=90)
    axes.set_yticks(range(len(rows)), [_shown(piece) for piece in rows])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for edge in axes.spines.values():
        edge.set_color("#BBBBBB")
    return figure


def over_image(encoded: bytes, pieces: Sequence[str], weights: np.ndarray) -> Figure:
    """The image once a piece, bright where the model looked: Xu et al. 2015, figure 2.

    Args:
        encoded: the image file's bytes.
        pieces: those that were written.
        weights: ``[pieces, height, width]`` over a grid that covers the image.
    """
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(encoded)) as opened:
        image = opened.convert("RGB")
    image.thumbnail((_LARGEST, _LARGEST))  # there is one copy of it a piece
    pixels = np.asarray(image)
    panels = len(pieces) + 1
    columns = min(_COLUMNS, panels)
    rows = math.ceil(panels / columns)
    height = _PANEL * max(0.5, min(2.0, pixels.shape[0] / pixels.shape[1]))
    figure = _figure((columns * _PANEL, rows * (height + 0.3)))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    grid[0].imshow(pixels)
    for axes, piece, weight in zip(grid[1:], pieces, weights, strict=False):
        # Between the centres of the grid's cells as a lens would see it.
        lens = Image.fromarray(weight.astype(np.float32)).resize(
            image.size, Image.Resampling.BICUBIC
        )
        share = np.clip(np.asarray(lens) / max(float(weight.max()), 1e-9), 0.0, 1.0)[..., None]
        axes.imshow((pixels * (0.15 + 0.85 * share)).astype(np.uint8))
        axes.set_title(_shown(piece.lstrip("▁") or piece), fontsize=10, pad=3)
    return figure


def among_points(
    points: Sequence[Sequence[float]], answer: Sequence[int], weights: np.ndarray
) -> Figure:
    """The points, and the way from each that was named to the next one.

    The stronger a line, the surer was the model of where it leads; dashes lead back to the first.

    Args:
        points: ``[n, 2]``.
        answer: positions among them.
        weights: ``[len(answer), n]``: how likely each point was at each step.
    """
    import numpy as np

    places = np.asarray(points, dtype=float).reshape(-1, 2)
    figure = _figure((4.6, 4.6))
    axes = figure.add_subplot()
    axes.set_aspect("equal", adjustable="datalim")
    for step in range(1, len(answer)):
        sure = float(weights[step][answer[step]])
        _way(axes, places[answer[step - 1]], places[answer[step]], alpha=0.25 + 0.75 * sure)
    if len(answer) > 2:
        first, last = places[answer[0]], places[answer[-1]]
        axes.plot(*zip(last, first, strict=True), color=BLUE, lw=1.0, ls=(0, (4, 3)), zorder=1)
    inside = places[np.setdiff1d(np.arange(len(places)), answer)]
    named = places[list(answer)]
    axes.scatter(inside[:, 0], inside[:, 1], s=26, color=GREY, zorder=3)
    axes.scatter(named[:, 0], named[:, 1], s=150, color=BLUE, zorder=3)
    for number, (x, y) in enumerate(named, 1):
        axes.text(x, y, str(number), color="white", size=7, ha="center", va="center", zorder=4)
    begin = named[:1]
    axes.scatter(begin[:, 0], begin[:, 1], s=230, color="none", edgecolors=ORANGE, lw=1.6)
    axes.tick_params(labelsize=7, color="#BBBBBB")
    for edge in axes.spines.values():
        edge.set_color("#BBBBBB")
    return figure


def _way(axes: Axes, start: np.ndarray, end: np.ndarray, alpha: float) -> None:
    look = {"arrowstyle": "-|>", "color": BLUE, "lw": 1.4, "alpha": alpha}
    axes.annotate(
        "",
        (end[0], end[1]),
        (start[0], start[1]),
        arrowprops={**look, "shrinkA": 6, "shrinkB": 6},
        zorder=2,
    )


def _figure(size: tuple[float, float]) -> Figure:
    """A figure that needs no screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _shown(piece: str) -> str:
    """A piece as a label: dollar signs would begin a formula, and controls break an SVG file."""
    seen = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) == "Cc" else c for c in piece
    )
    return seen.replace("$", r"\$")
