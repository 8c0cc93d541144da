"""An SVG picture with text, boxes, arrows and formulas, for light and dark themes."""

import html
import math
import re
from collections.abc import Iterable

Point = tuple[float, float]

_STYLE = """
    text { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 14px; fill: #1b2033 }
    .small { font-size: 12.5px } .what { font-size: 13px; fill: #4d566e }
    .strong { font-weight: 700 } .head { font-size: 15px; font-weight: 700; fill: #4f4bd0 }
    .page { fill: #ffffff; stroke: #e6e8f2 } .panel { fill: #f4f5fb; stroke: #d6daea }
    .box { fill: #ffffff; stroke: #b9bfd2 } .cell { fill: none; stroke: #d6daea }
    .frame { fill: none; stroke: #4f4bd0; stroke-width: 2.4 }
    .blue { fill: #0072b2 } .warm { fill: #d55e00 } .violet { fill: #4f4bd0 } .green { fill: #009e73 }
    .wire, .thin, .dash { stroke: #6b738e; stroke-width: 1.8; fill: none; stroke-linecap: round; stroke-linejoin: round }
    .thin { stroke: #b9bfd2; stroke-width: 1.2 } .dash { stroke-dasharray: 2 5 }
    .line-blue, .line-warm, .line-violet, .line-green { stroke-width: 2.4; fill: none; stroke-linecap: round; stroke-linejoin: round }
    .line-blue { stroke: #0072b2 } .line-warm { stroke: #d55e00 } .line-violet { stroke: #4f4bd0 } .line-green { stroke: #009e73; stroke-dasharray: 5 6 }
    @media (prefers-color-scheme: dark) {
      text { fill: #eceffa } .what { fill: #b3bcd2 } .head { fill: #a5a2ff }
      .page { fill: #0f131d; stroke: #262d42 } .panel { fill: #171b29; stroke: #323a52 }
      .box { fill: #202638; stroke: #4c5675 } .cell { stroke: #323a52 } .frame { stroke: #a5a2ff }
      .blue { fill: #56b4e9 } .warm { fill: #ff9a5c } .violet { fill: #a5a2ff } .green { fill: #4fd3a8 }
      .wire, .dash { stroke: #8f98b3 } .thin { stroke: #4c5675 }
      .line-blue { stroke: #56b4e9 } .line-warm { stroke: #ff9a5c } .line-violet { stroke: #a5a2ff } .line-green { stroke: #4fd3a8 }
    }
"""  # noqa: E501


class Canvas:
    """A picture that is filled from the back to the front; coordinates are pixels."""

    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self.width, self.height = width, height
        self._elements = [
            f"<title>{_escape(title)}</title>",
            f"<desc>{_escape(description)}</desc>",
        ]
        self._elements.append(f"<style>{_STYLE}</style>")
        self.rect(0.5, 0.5, width - 1, height - 1, "page", 14)

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        css: str = "box",
        radius: float = 0,
        opacity: float | None = None,
    ) -> None:
        """Draw a rectangle."""
        size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
        corner = f' rx="{_n(radius)}"' if radius else ""
        shade = "" if opacity is None else f' fill-opacity="{_n(opacity, 2)}"'
        self._elements.append(f'<rect class="{css}" {size}{corner}{shade}/>')

    def text(
        self,
        x: float,
        y: float,
        markup: str,
        css: str = "",
        anchor: str = "middle",
        turn: float = 0,
    ) -> None:
        """Write text; formulas are between dollar signs, with ``_`` and ``^`` as in TeX.

        Args:
            x: The position of the anchor.
            y: The base line.
            markup: Text with formulas.
            css: Classes of the text.
            anchor: start, middle or end.
            turn: Degrees, clockwise.
        """
        name = f' class="{css}"' if css else ""
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        where = f'x="{_n(x)}" y="{_n(y)}"'
        if turn:
            where = f'transform="translate({_n(x)} {_n(y)}) rotate({_n(turn)})"'
        self._elements.append(f"<text{name} {where}{side}>{_spans(markup)}</text>")

    def line(self, points: Iterable[Point], css: str = "wire", arrow: bool = False) -> None:
        """Draw straight lines through points, with a head at the last one."""
        corners = list(points)
        path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in corners)
        self._elements.append(f'<path class="{css}" d="{path}"/>')
        if arrow:
            (x0, y0), (x1, y1) = corners[-2:]
            angle = math.atan2(y1 - y0, x1 - x0)
            left, right = (
                (x1 - 6 * math.cos(angle + turn), y1 - 6 * math.sin(angle + turn))
                for turn in (0.6, -0.6)
            )
            self.line([left, (x1, y1), right], css.replace("dash", "wire"))

    def circle(self, x: float, y: float, radius: float, css: str = "box") -> None:
        """Draw a circle around a point."""
        self._elements.append(f'<circle class="{css}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>')

    def cells(self, corners: Iterable[Point], size: Point, css: str, opacity: float) -> None:
        """Draw many equal rectangles as one element."""
        width, height = map(_n, size)
        path = "".join(f"M{_n(x)} {_n(y)}h{width}v{height}h-{width}z" for x, y in corners)
        self._elements.append(f'<path class="{css}" fill-opacity="{_n(opacity, 2)}" d="{path}"/>')

    def svg(self) -> str:
        """The picture as a file."""
        size = f'width="{_n(self.width)}" height="{_n(self.height)}"'
        box = f'viewBox="0 0 {_n(self.width)} {_n(self.height)}"'
        start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">'
        return "\n".join([start, *self._elements, "</svg>"]) + "\n"


_RUN = re.compile(r"([_^])(?:\{([^}]*)\}|(.))|([^_^]+)")


def _spans(markup: str) -> str:
    """Return text with its formulas as elements of SVG: letters in italics, indices smaller."""
    result, offset = [], 0.0
    for number, part in enumerate(markup.split("$")):
        runs = _RUN.findall(part) if number % 2 else [("", "", "", part)]
        for sign, group, single, plain in runs:
            level = {"": 0.0, "_": 4.0, "^": -5.0}[sign]
            text = plain or group or single
            content = _italic(text, bool(sign)) if number % 2 else _escape(text)
            if not content:
                continue
            move = f' dy="{_n(level - offset)}"' if level != offset else ""
            size = ' font-size="75%"' if level else ""
            result.append(f"<tspan{move}{size}>{content}</tspan>" if move or size else content)
            offset = level
    return "".join(result)


def _italic(text: str, is_index: bool) -> str:
    """Return a part of a formula: single letters are variables, longer words are names."""

    def replace(match: re.Match[str]) -> str:
        word = match[0]
        is_variable = len(word) == 1 or is_index
        return f'<tspan font-style="italic">{word}</tspan>' if is_variable else word

    return re.sub("[A-Za-zα-ω]+", replace, html.escape(text, quote=False))


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


def _n(value: float, digits: int = 1) -> str:
    """Return a number without superfluous zeros."""
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
