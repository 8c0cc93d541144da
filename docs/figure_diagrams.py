"""Figures that show how values flow: steps, directions, lookups, blocks and a search."""

from collections.abc import Iterable

import numpy as np
from figure_canvas import Canvas
from figure_numbers import (
    forced_steps,
    influence,
    language,
    lookup,
    search_tree,
)
from figure_plots import WIDTH, bar, number

Prefix = tuple[int, ...]


def draw_teacher_forcing() -> Canvas:
    """Draw three steps of a decoder that reads the reference."""
    steps, names = forced_steps(), language().names
    canvas = Canvas(
        WIDTH,
        398,
        "Teacher forcing",
        "Three steps of a decoder. Each step gives every token a probability. The next step reads "
        "the token of the reference, also where another token is more probable.",
    )
    step, middle = 134, 76
    for t, (token, distribution) in enumerate(zip(steps.target, steps.distributions, strict=True)):
        x = middle + t * step
        canvas.text(x, 30, f"$y_{t + 1}$ = {names[token]}", "strong")
        context = ", ".join(f"$y_{i + 1}$" for i in range(t))
        canvas.text(x, 52, f"$p$($· |$ {context + ', ' if context else ''}$x$)", "small")
        for index, value in enumerate(distribution.tolist()):
            place = x + (index - 1) * 36
            is_target = index == token
            bar(canvas, place, 168, value, 100, "violet" if is_target else "blue")
            if is_target:
                canvas.rect(place - 14, 168 - value * 100, 28, value * 100, "frame", 2)
            canvas.text(place, 186, names[index], "strong" if is_target else "small")
        canvas.line([(x - 54, 168), (x + 54, 168)], "thin")
        canvas.line([(x, 226), (x, 198)], arrow=True)
        canvas.rect(x - 44, 228, 88, 34, "box", 7)
        canvas.text(x, 250, "decoder")
        canvas.line([(x, 298), (x, 266)], arrow=True)
        canvas.rect(x - 30, 300, 60, 30, "panel", 7)
        canvas.text(x, 320, f"$y_{t}$ = {names[steps.target[t - 1]]}" if t else "begin")
        if t:
            canvas.line([(x - step + 46, 245), (x - 48, 245)], arrow=True)
            gap = x - step / 2
            corners = [(x - step + 30, 25), (gap, 25), (gap, 315), (x - 34, 315)]
            canvas.line(corners, "line-violet", arrow=True)
    canvas.line([(6, 245), (28, 245)], arrow=True)
    canvas.text(16, 236, "$x$")
    factors = [number(float(np.exp(score))) for score in steps.log_probs]
    product = number(float(np.exp(steps.log_probs.sum())))
    canvas.text(WIDTH / 2, 362, f"$p$($y | x$) = {' · '.join(factors)} = {product}", "strong")
    total = number(float(steps.log_probs.sum()))
    canvas.text(WIDTH / 2, 384, f"log $p$($y | x$) = {total}, the sum of three logarithms", "what")
    return canvas


def draw_annotations() -> Canvas:
    """Draw both directions of a recurrent encoder, and what each of them knows."""
    change = influence()
    words = change.shape[1]
    canvas = Canvas(
        WIDTH,
        520,
        "The bidirectional encoder and its annotations",
        "One row of cells reads the words from left to right, another one from right to left. "
        "Each annotation joins both states. Below, two triangular matrices show that the forward "
        "half depends on earlier words and the backward half on later ones, near words most.",
    )
    left, step = 100, 64
    canvas.text(14, 54, "annotations", "what", "start")
    canvas.text(14, 128, "backward", "what", "start")
    canvas.text(14, 188, "forward", "what", "start")
    canvas.text(14, 248, "words", "what", "start")
    for j in range(words):
        x = left + 20 + j * step
        canvas.rect(x - 20, 34, 40, 15, "blue", 0, 0.35)
        canvas.rect(x - 20, 49, 40, 15, "violet", 0, 0.35)
        canvas.rect(x - 20, 34, 40, 30, "cell", 4)
        canvas.text(x, 26, f"$h_{j + 1}$", "strong")
        for y, css, side in ((123, "violet", -1), (183, "blue", 1)):
            canvas.rect(x - 20, y - 17, 40, 34, "box", 6)
            canvas.rect(x - 20, y - 17, 40, 34, css, 6, 0.2)
            canvas.text(x - 2, y + 6, f"$h_{j + 1}$")
            canvas.line([(x - 6 - 5 * side, y - 9), (x - 6 + 5 * side, y - 9)], "wire")
            tip = x - 6 + 5 * side
            canvas.line([(tip - 3 * side, y - 11.5), (tip, y - 9), (tip - 3 * side, y - 6.5)])
        if j:
            canvas.line([(x - 22, 123), (x - step + 22, 123)], "line-violet", arrow=True)
            canvas.line([(x - step + 22, 183), (x - 22, 183)], "line-blue", arrow=True)
        canvas.line([(x - 9, 104), (x - 9, 68)], arrow=True)
        canvas.line([(x + 20, 176), (x + 27, 170), (x + 27, 90), (x + 10, 68)], arrow=True)
        canvas.line([(x - 9, 230), (x - 9, 204)], arrow=True)
        canvas.line([(x - 20, 234), (x - 28, 226), (x - 28, 140), (x - 20, 132)], arrow=True)
        canvas.rect(x - 20, 232, 40, 26, "panel", 6)
        canvas.text(x, 250, f"$x_{j + 1}$")
    canvas.text(14, 292, "How much a word $x_i$ changes both halves of $h_j$", "head", "start")
    cell = 30
    for half, (name, css) in enumerate((("forward", "blue"), ("backward", "violet"))):
        x0, y0 = 44 + half * (words * cell + 42), 336
        canvas.text(x0 + words * cell / 2, 312, f"{name} half", "strong")
        for i in range(words):
            canvas.text(x0 + i * cell + cell / 2, y0 - 6, f"$x_{i + 1}$", "small")
        for j in range(words):
            canvas.text(x0 - 14, y0 + j * cell + 20, f"$h_{j + 1}$", "small")
            for i in range(words):
                value = float(change[half, j, i])
                place = (x0 + i * cell + 1, y0 + j * cell + 1, cell - 2, cell - 2)
                canvas.rect(*place, "cell", 3)
                if value:
                    canvas.rect(*place, css, 3, 0.6 * value)
                canvas.text(x0 + i * cell + cell / 2, y0 + j * cell + 20, number(value, 1), "small")
    canvas.text(WIDTH / 2, 508, "mean of random GRUs, relative to the largest", "what")
    return canvas


def draw_lookup() -> Canvas:
    """Draw a query that is compared with keys, and the sum of values."""
    data = lookup()
    canvas = Canvas(
        WIDTH,
        404,
        "Query, keys and values",
        "A query is compared with three keys. The scores become weights that sum to 1, and the "
        "context is the sum of the values with these weights.",
    )
    left, step = 176, 94
    names = [
        ("query", 40),
        ("keys $k_s$", 106),
        ("scores", 160),
        ("weights $a_s$", 258),
        ("values $v_s$", 312),
        ("context", 376),
    ]
    for name, y in names:
        canvas.text(14, y, name, "strong", "start")
    canvas.text(14, 178, "$e_s = q · k_s$", "what", "start")
    canvas.text(14, 276, "softmax($e$)", "what", "start")
    middle = left + step
    canvas.rect(middle - 46, 18, 92, 34, "panel", 7)
    canvas.text(middle, 40, f"$q$ = {_vector(data.query)}")
    for s in range(len(data.keys)):
        x = left + s * step
        canvas.line([(middle + (x - middle) * 0.5, 54), (x, 82)], arrow=True)
        canvas.rect(x - 42, 85, 84, 32, "box", 7)
        canvas.text(x, 106, _vector(data.keys[s]))
        canvas.line([(x, 119), (x, 142)], arrow=True)
        canvas.text(x, 160, f"$e_{s + 1}$ = {_short(data.scores[s])}")
        bar(canvas, x, 272, float(data.weights[s]), 110, "blue")
        canvas.line([(x - 40, 272), (x + 40, 272)], "thin")
        canvas.rect(x - 42, 291, 84, 32, "box", 7)
        canvas.text(x, 312, f"$v_{s + 1}$ = {_short(data.values[s, 0])}")
        canvas.line([(x, 325), (middle + (x - middle) * 0.5, 352)], arrow=True)
    terms = " + ".join(
        f"{number(float(a), 3)} · {_short(v)}"
        for a, v in zip(data.weights, data.values[:, 0], strict=True)
    )
    canvas.rect(96, 355, WIDTH - 108, 34, "panel", 7)
    canvas.text(254, 377, f"{terms} = {number(float(data.context[0]), 3)}", "small")
    return canvas


def _vector(values: np.ndarray) -> str:
    return f"({', '.join(_short(value) for value in values)})"


def _short(value: float) -> str:
    return f"{value:g}"


_SUBLAYERS = {
    "encoder": [("self-attention", ""), ("feed-forward", "network")],
    "decoder": [
        ("causal", "self-attention"),
        ("attention to", "the memory $m$"),
        ("feed-forward", "network"),
    ],
}
_HEIGHT = 122  # of a sublayer with its residual connection


def draw_blocks() -> Canvas:
    """Draw the blocks of an encoder and of a decoder with both kinds of normalization."""
    canvas = Canvas(
        WIDTH,
        828,
        "The Transformer block with post-norm and pre-norm",
        "Four stacks of sublayers from bottom to top. With post-norm the normalization follows the "
        "sum with the residual connection, on the main path. With pre-norm it stands before the "
        "sublayer, and the main path has sums only.",
    )
    for left, name in ((14, "post"), (218, "pre")):
        formula = "LN($x + f$($x$))" if name == "post" else "$x + f$(LN($x$))"
        canvas.text(left + 94, 26, f"{name}-norm", "head")
        canvas.text(left + 94, 47, formula)
        _draw_stack(canvas, left + 30, 340, "encoder", is_pre=name == "pre")
        _draw_stack(canvas, left + 30, 778, "decoder", is_pre=name == "pre")
    canvas.line([(14, 372), (WIDTH - 14, 372)], "thin")
    canvas.text(
        WIDTH / 2,
        816,
        "residual path in blue; pre-norm ends with one more LN",
        "small what",
    )
    return canvas


def _draw_stack(canvas: Canvas, x: float, bottom: float, name: str, is_pre: bool) -> None:
    """Draw a block from its input at the bottom to its output; x is the residual path."""
    letter = "x" if name == "encoder" else "y"
    side, y = x + 92, bottom
    canvas.text(x, bottom + 17, f"${letter}$", "strong")
    canvas.text(side, bottom + 17, f"block of the {name}", "what")
    for index, lines in enumerate(_SUBLAYERS[name]):
        total = y - (106 if is_pre else 74)  # where the sum is
        canvas.line([(x, y), (x, y - _HEIGHT)], "line-blue")
        start = y - 12
        if is_pre:
            canvas.line([(x, start), (side, start), (side, start - 10)], arrow=True)
            _box(canvas, side, y - 24, 44, 24, "LN")
            start = y - 49
            canvas.line([(side, start), (side, start - 7)], arrow=True)
            _box(canvas, side, y - 58, 124, 36, *lines)
            canvas.line([(side, y - 95), (side, total), (x + 11, total)], arrow=True)
        else:
            canvas.line([(x, start), (side, start), (side, start - 10)], arrow=True)
            _box(canvas, side, y - 24, 124, 36, *lines)
            canvas.line([(side, y - 61), (side, total), (x + 11, total)], arrow=True)
            _box(canvas, x, y - 90, 44, 24, "LN")
        canvas.circle(x, total, 9)
        canvas.line([(x - 5, total), (x + 5, total)], "wire")
        canvas.line([(x, total - 5), (x, total + 5)], "wire")
        y -= _HEIGHT
        canvas.text(x + 10, y + 3, f"${letter}{'′' * (index + 1)}$", "strong", "start")
    canvas.line([(x, y), (x, y - 8)], "line-blue", arrow=True)


def _box(canvas: Canvas, x: float, bottom: float, width: float, height: float, *lines: str) -> None:
    """Draw a box around one or two lines."""
    texts = [line for line in lines if line]
    css = "violet" if texts == ["LN"] else "box"
    canvas.rect(x - width / 2, bottom - height, width, height, "box", 6)
    if css == "violet":
        canvas.rect(x - width / 2, bottom - height, width, height, css, 6, 0.25)
    for row, line in enumerate(texts):
        y = bottom - height / 2 + 4.5 + (row - (len(texts) - 1) / 2) * 15
        canvas.text(x, y, line, "small")


def draw_search() -> Canvas:
    """Draw the prefixes that a beam search of size 2 compares, and the greedy path."""
    tree, names = search_tree(), language().names
    rows = _leaf_rows(tree.probabilities)
    top, row, left, step = 74, 30, 40, 112
    bottom = top + row * (1 + max(rows.values()))
    canvas = Canvas(
        WIDTH,
        bottom + 40,
        "Greedy and beam search",
        "A tree of prefixes with their probabilities. Greedy search follows a to a, end with 0.2. "
        "A beam of two also keeps b and finds b, end with 0.36.",
    )
    canvas.text(14, 26, "A beam of two, and greedy search", "head", "start")
    for depth in (1, 2, 3):
        canvas.text(left + depth * step, 54, f"$y_{depth}$", "what")
    for prefix in tree.probabilities:
        if prefix:
            x, y = left + len(prefix) * step, top + rows[prefix] * row
            x0, y0 = x - step, top + rows[prefix[:-1]] * row
            start = x0 + (38 if len(prefix) > 1 else 24)
            corners = [(start, y0), (start + 14, y0), (x - 52, y), (x - 38, y)]
            is_greedy = tree.greedy[: len(prefix)] == prefix
            canvas.line(corners, "line-warm" if is_greedy else "thin")
    for prefix, probability in tree.probabilities.items():
        x, y = left + len(prefix) * step, top + rows[prefix] * row
        if not prefix:
            canvas.text(x - 4, y + 5, "begin", "strong")
            continue
        canvas.rect(x - 38, y - 12, 76, 24, "box", 6)
        if prefix in tree.beam:
            canvas.rect(x - 38, y - 12, 76, 24, "violet", 6, 0.35)
        if prefix == tree.best:
            canvas.rect(x - 38, y - 12, 76, 24, "frame", 6)
        digits = 3 if probability < 0.1 and round(probability, 2) != round(probability, 3) else 2
        value = f"{probability:.{digits}f}".rstrip("0")
        css = "small strong" if prefix in (tree.best, tree.greedy) else "small"
        canvas.text(x, y + 4.5, f"{names[prefix[-1]]} {value}", css)
    x, y = 14, bottom + 10
    canvas.rect(x, y - 10, 20, 14, "violet", 3, 0.35)
    canvas.text(x + 27, y + 2, "in the beam", "small", "start")
    canvas.rect(x + 126, y - 10, 20, 14, "frame", 3)
    canvas.text(x + 153, y + 2, "its best output", "small", "start")
    canvas.line([(x + 270, y - 3), (x + 292, y - 3)], "line-warm")
    canvas.text(x + 299, y + 2, "greedy", "small", "start")
    return canvas


def _leaf_rows(prefixes: Iterable[Prefix]) -> dict[Prefix, float]:
    """Return a row for each prefix: one after another for leaves, the middle of the children."""
    children: dict[Prefix, list[Prefix]] = {prefix: [] for prefix in prefixes}
    for prefix in children:
        if prefix:
            children[prefix[:-1]].append(prefix)
    rows: dict[Prefix, float] = {}

    def visit(prefix: Prefix) -> float:
        """Place a prefix and all below it."""
        if inner := children[prefix]:
            places = [visit(child) for child in inner]
            rows[prefix] = (places[0] + places[-1]) / 2
        else:
            rows[prefix] = sum(not children[each] for each in rows)
        return rows[prefix]

    visit(())
    return rows
