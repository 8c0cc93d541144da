"""An alignment as characters: target pieces below each other, source pieces side by side."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

SHADES = " ░▒▓█"
ASCII_SHADES = " .:*#"
TOP = 3
_LEAST = 0.05  # weights below it are not named in the narrow form
_WIDEST_PIECE = 10
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
_LEFT_TO_RIGHT_MARK = "\u200e"  # takes no room


def draw(
    source: Sequence[str],
    target: Sequence[str],
    weights: Sequence[Sequence[float]],
    width: int = 80,
    ascii_only: bool = False,
) -> list[str]:
    """The lines of the table: a shaded matrix, or the best source pieces where that is too wide.

    Args:
        source: source pieces.
        target: target pieces.
        weights: ``[target][source]``, each row summing to about 1, or nowhere anything: a model
            without attention.
        width: columns of the terminal.
        ascii_only: whether to draw without block characters.
    """
    if not source or not target:
        return []
    if not any(any(row) for row in weights):
        return ["(this model has no attention: it looks nowhere)"]
    heads = [_fit(piece, _WIDEST_PIECE) for piece in source]
    names = [_fit(piece, 2 * _WIDEST_PIECE) for piece in target]
    margin = max(map(cells, names))
    if margin + 1 + sum(max(2, cells(head)) + 1 for head in heads) > width:
        return _narrow(source, names, weights, margin)
    shades = ASCII_SHADES if ascii_only else SHADES
    lines = [" " * margin + "  " + " ".join(_pad(head, max(2, cells(head))) for head in heads)]
    for name, row in zip(names, weights, strict=True):
        blocks = [
            shade(weight, shades) * max(2, cells(head))
            for head, weight in zip(heads, row, strict=True)
        ]
        lines.append(_pad(name, margin, right=True) + "  " + " ".join(blocks))
    return [line.rstrip() for line in lines]


def shade(weight: float, shades: str = SHADES) -> str:
    """The character for a weight between 0 and 1; even weights of some size are visible."""
    level = min(1.0, max(0.0, weight)) * (len(shades) - 1)
    return shades[min(len(shades) - 1, round(level))]


def cells(text: str) -> int:
    """How many columns a terminal needs for a text: Chinese characters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def _narrow(
    source: Sequence[str], names: list[str], weights: Sequence[Sequence[float]], margin: int
) -> list[str]:
    lines = []
    for name, row in zip(names, weights, strict=True):
        best = sorted(range(len(row)), key=lambda index: -row[index])[:TOP]
        best = best[:1] + [index for index in best[1:] if row[index] >= _LEAST]
        told = ", ".join(
            f"{_shown(source[index])} ({index + 1}) {row[index]:.2f}" for index in best
        )
        lines.append(f"{_pad(name, margin, right=True)}  {told}")
    return lines


def _fit(piece: str, width: int) -> str:
    """A piece that can be shown, cut to a number of columns."""
    text = _shown(piece)
    if cells(text) <= width:
        return text
    while cells(text) > width - 1:
        text = text[:-1]
    return text + "…"


def _shown(piece: str) -> str:
    """A piece that stays within its own cells, whatever stands in it.

    Control characters become dots, a mark that would sit on the space before it gets a circle, and
    right-to-left pieces are kept from being joined to a run that a terminal turns around.
    """
    text = "".join(sign if sign.isprintable() else "·" for sign in piece) or "·"
    if unicodedata.category(text[0]).startswith("M"):
        text = "◌" + text
    if any(unicodedata.bidirectional(sign) in _RIGHT_TO_LEFT for sign in text):
        text = f"{_LEFT_TO_RIGHT_MARK}{text}{_LEFT_TO_RIGHT_MARK}"
    return text


def _pad(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - cells(text))
    return space + text if right else text + space
