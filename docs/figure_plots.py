"""Figures that show numbers: weights, masks, costs and positions."""

import math
from collections.abc import Iterable

import numpy as np
from figure_canvas import Canvas
from figure_numbers import (
    COMPONENTS,
    DEPTH,
    KERNEL,
    NEIGHBOURS,
    POSITIONS,
    costs,
    masks,
    poolings,
    rotated,
    sinusoid_map,
)

WIDTH = 420
_SHADE = 0.6  # of the largest number, so that text in front of it has a contrast in both themes


def number(value: float, digits: int = 2) -> str:
    """Return a number with a minus sign; 0 without decimals is exactly 0."""
    return "0" if value == 0 else f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def bar(canvas: Canvas, x: float, base: float, value: float, scale: float, css: str) -> None:
    """Draw a bar of 28 pixels in the middle of x, with its number above."""
    height = value * scale
    if height:
        canvas.rect(x - 14, base - height, 28, height, css, 2, _SHADE)
    canvas.text(x, base - height - 4, number(value), "small")


def draw_poolings() -> Canvas:
    """Draw one example's states, and the weights of five poolings."""
    example = poolings()
    length, depth = example.states.shape
    left, top, cell, row = 100, 58, 50, 26
    title = "Weights of five poolings of the same five states"
    canvas = Canvas(
        WIDTH,
        532,
        title,
        "A table of five states with four components each and a query, and below it the weights "
        "that the mean, the maximum, gates, two hops and a query give to the states.",
    )
    limit = max(abs(example.states).max(), abs(example.query).max())
    columns = [*example.states, example.query]
    for position, vector in enumerate(columns):
        is_query = position == length
        x = left + position * cell + (12 if is_query else 0)
        canvas.text(x + cell / 2, top - 10, "$q$" if is_query else f"$h_{position + 1}$")
        for component, value in enumerate(vector):
            y = top + component * row
            css = "blue" if value > 0 else "warm"
            canvas.rect(x, y, cell - 3, row - 3, css, 3, _SHADE * abs(value) / limit)
            canvas.text(x + (cell - 3) / 2, y + 16.5, number(value, 1), "small")
            if not is_query and example.winners[component] == position:
                canvas.rect(x, y, cell - 3, row - 3, "frame", 3)
    canvas.text(14, 24, "States $H$ and a query $q$", "head", "start")
    for component in range(depth):
        canvas.text(14, top + component * row + 17, f"$j$ = {component + 1}", "what", "start")
    labels = {
        "mean": ("mean", "1 / $L$"),
        "max": ("maximum", "frames / $d$"),
        "gate": ("gates", "mean of $g_l$"),
        "self_attention": ("two hops", "rows of $A$"),
        "top_down": ("query", "softmax($q·h_l$)"),
    }
    canvas.text(14, top + depth * row + 28, "Weights of the states", "head", "start")
    base = top + depth * row + 86
    for name, weights in example.weights.items():
        canvas.line([(left - 2, base), (left + length * cell, base)], "thin")
        canvas.text(14, base - 18, labels[name][0], "strong", "start")
        canvas.text(14, base - 2, labels[name][1], "small", "start")
        for position, weight in enumerate(weights):
            css = "blue" if name == "top_down" else "violet"
            bar(canvas, left + position * cell + cell / 2, base, weight, 60, css)
        base += 65
    return canvas


def draw_masks() -> Canvas:
    """Draw what each mask adds to the scores, and the weights."""
    both = masks()
    cell, gap, left = 33, 24, 52
    length = len(both["causal"].allowed)
    side = length * cell
    canvas = Canvas(
        WIDTH,
        2 * side + 138,
        "A padding mask and a causal mask",
        "Two matrices of zeros and minus infinity, which are added to the scores, and below them "
        "the weights: hidden positions have exactly the weight 0.",
    )
    titles = {"padding": "Padding mask", "causal": "Causal mask"}
    for column, (name, mask) in enumerate(both.items()):
        x = left + column * (side + gap)
        canvas.text(x + side / 2, 24, titles[name], "head")
        canvas.text(x + side / 2, side + 92, "weights $A$", "strong")
        for block, matrix in enumerate((mask.added, mask.weights)):
            top = 62 + block * (side + 42)
            for s in range(length):
                if not block:
                    canvas.text(x + s * cell + cell / 2, top - 6, f"{s + 1}", "what")
            for t in range(length):
                if not column:
                    canvas.text(x - 12, top + t * cell + 21, f"{t + 1}", "what")
                for s in range(length):
                    place = (x + s * cell + 1, top + t * cell + 1, cell - 2, cell - 2)
                    if not mask.allowed[t, s]:
                        canvas.rect(*place, "panel", 3)
                    else:
                        canvas.rect(*place, "cell", 3)
                    if block and matrix[t, s]:
                        canvas.rect(*place, "blue", 3, _SHADE * matrix[t, s])
                    value = "−∞" if np.isneginf(matrix[t, s]) else number(matrix[t, s])
                    css = "small" if mask.allowed[t, s] else "small what"
                    canvas.text(x + s * cell + cell / 2, top + t * cell + 21, value, css)
        canvas.text(x + side / 2, 42, "source $s$", "what")
    for top in (62, 104 + side):
        canvas.text(20, top + side / 2, "target $t$", "what", "middle", -90)
    canvas.text(WIDTH / 2, 2 * side + 124, "$A$ = softmax($E + M$); above, $M$", "what")
    return canvas


_LINES = {
    "self-attention": ("line-blue", "self-attention"),
    "recurrence": ("line-warm", "recurrence"),
    "convolution": ("line-violet", f"convolution, $k$ = {KERNEL}"),
    "neighbours": ("line-green", f"self-attention, $r$ = {NEIGHBOURS}"),
}


def draw_costs() -> Canvas:
    """Draw operations and path lengths over the number of positions, on logarithmic axes."""
    data = costs()
    canvas = Canvas(
        WIDTH,
        588,
        "Cost and path length by the number of positions",
        "Two plots with logarithmic axes: the operations of self-attention grow fastest and equal "
        "those of recurrence where the number of positions is the depth; its path has length 1.",
    )
    for number_, (css, label) in enumerate(_LINES.values()):
        x, y = 20 + 200 * (number_ % 2), 24 + 22 * (number_ // 2)
        canvas.line([(x, y - 4), (x + 24, y - 4)], css)
        canvas.text(x + 32, y, label, "small", "start")
    canvas.text(14, 78, f"Operations, depth $d$ = {DEPTH}", "head", "start")
    _plot(canvas, 92, 208, data.lengths, data.operations, range(4, 12, 2), marked=DEPTH)
    canvas.text(14, 348, "Longest path between two positions", "head", "start")
    _plot(canvas, 362, 178, data.lengths, data.paths, range(5))
    canvas.text(238, 578, "number of positions $n$", "what")
    return canvas


def _plot(
    canvas: Canvas,
    top: float,
    height: float,
    lengths: np.ndarray,
    lines: dict[str, np.ndarray],
    powers: Iterable[int],
    marked: int | None = None,
) -> None:
    """Draw lines over lengths; both axes are logarithmic, and ``powers`` of ten are marked."""
    left, right = 62, WIDTH - 16
    values = np.concatenate(list(lines.values()))
    low, high = np.log10(values.min()) - 0.15, np.log10(values.max()) + 0.15
    first, last = np.log10(lengths[0]), np.log10(lengths[-1])

    def place(n: float, value: float) -> tuple[float, float]:
        x = left + (math.log10(n) - first) / (last - first) * (right - left)
        return x, top + height - (math.log10(value) - low) / (high - low) * height

    bottom = top + height
    for power in powers:
        _, y = place(lengths[0], 10.0**power)
        if top <= y <= bottom:
            canvas.line([(left, y), (right, y)], "thin")
            label = ("1", "10")[power] if power < 2 else f"$10^{{{power}}}$"
            canvas.text(left - 8, y + 5, label, "what", "end")
    for n in lengths[::2]:
        x, _ = place(n, values.min())
        canvas.line([(x, top), (x, bottom)], "thin")
        canvas.text(x, bottom + 17, f"{n:,.0f}", "what")
    for name, line in lines.items():
        canvas.line([place(*point) for point in zip(lengths, line, strict=True)], _LINES[name][0])
    if marked is not None:
        x, y = place(marked, lines["recurrence"][list(lengths).index(marked)])
        canvas.circle(x, y, 5, "frame")
        canvas.text(x + 14, y + 10, "$n = d$", "small strong", "start")


def draw_sinusoids() -> Canvas:
    """Draw the sinusoids as a heat map."""
    values = sinusoid_map()
    left, top, width, height = 48, 60, 11, 7
    right, bottom = left + COMPONENTS * width, top + POSITIONS * height
    canvas = Canvas(
        WIDTH,
        bottom + 48,
        "Sinusoidal positions",
        "A heat map with a row per position and a column per component: the first components "
        "change from position to position, the last ones hardly change.",
    )
    canvas.text(14, 24, f"$p_{{t,i}}$ for $d$ = {COMPONENTS}", "head", "start")
    canvas.text((left + right) / 2, 42, "component $i$: even sine, odd cosine", "what")
    levels = np.round(values * 8).astype(int)
    for level in np.unique(levels):
        corners = [
            (left + i * width, top + t * height) for t, i in np.argwhere(levels == level).tolist()
        ]
        css = "blue" if level > 0 else "warm"
        canvas.cells(corners, (width, height), css, abs(level) / 8)
    canvas.rect(left, top, right - left, bottom - top, "cell")
    for i in range(0, COMPONENTS, 4):
        canvas.text(left + (i + 0.5) * width, top - 4, f"{i}", "small")
    for t in range(0, POSITIONS, 5):
        canvas.text(left - 6, top + (t + 0.5) * height + 4, f"{t}", "small", "end")
    canvas.text(15, (top + bottom) / 2, "position $t$", "what", "middle", -90)
    for index in range(9):
        value = index / 4 - 1
        x = left + 88 + index * 20
        canvas.rect(x, bottom + 12, 20, 12, "blue" if value > 0 else "warm", 0, abs(value))
        if index % 4 == 0:
            canvas.text(x + 10, bottom + 40, number(value, 0), "small")
    return canvas


def draw_rotations() -> Canvas:
    """Draw how pairs of components turn with the position."""
    turned = rotated()
    pairs = (0, 2, 4, 6)
    canvas = Canvas(
        WIDTH,
        246,
        "Rotary angles",
        "Four circles, one per pair of components, with the vector (1, 0) turned for seven "
        "positions: the first pair turns almost once around, the others less and less.",
    )
    canvas.text(14, 26, f"Angles $tθ_i$ for $t$ = 0, …, {len(turned) - 1}", "head", "start")
    radius = 38
    for column, pair in enumerate(pairs):
        x, y = 60 + column * 100, 112
        canvas.circle(x, y, radius, "thin")
        canvas.line([(x - radius - 5, y), (x + radius + 5, y)], "thin")
        canvas.line([(x, y - radius - 5), (x, y + radius + 5)], "thin")
        for t, (cosine, sine) in enumerate(turned[:, pair].tolist()):
            end = (x + radius * cosine, y - radius * sine)
            canvas.line([(x, y), end], "line-blue" if t else "line-warm")
            if column < 2:
                reach = radius + 11
                canvas.text(x + reach * cosine, y + 4.5 - reach * sine, f"{t}", "small")
        angle = math.atan2(turned[1, pair, 1], turned[1, pair, 0])
        canvas.text(x, 188, f"$i$ = {pair}", "strong")
        canvas.text(x, 207, f"$θ_{pair}$ = {angle:.2g}", "small")
    canvas.text(WIDTH / 2, 232, f"pair ($i$, $i + d/2$), $d$ = {COMPONENTS}", "small what")
    return canvas
