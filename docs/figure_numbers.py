"""The numbers of the figures, by the NumPy functions that the pages show.

The inputs are those of the pages' own examples: their lines of code are read from the pages.
"""

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.models.attention.matrix_reference import attention, causal_mask
from tests.models.attention.reference import attend, dot, softmax
from tests.models.decoders.reference import teacher_forcing
from tests.models.encoders.reference import annotations, gru_step
from tests.models.layers.reference import (
    gate_pooling,
    max_pooling,
    mean_pooling,
    rotate,
    self_attentive_pooling,
    sinusoids,
    top_down_pooling,
)
from tests.models.search.reference import beam_search, greedy_search

_PAGES = Path(__file__).resolve().parent / "explanation"


def page_values(page: str, names: list[str]) -> list[Any]:
    """Return the values of the first assignments to some names in a page's code."""
    code = (_PAGES / page).read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"np": np}
    for name in names:
        match = re.search(rf"^{name} = .*$", code, re.MULTILINE)
        if match is None:
            raise ValueError(f"{page} has no line that begins with `{name} =`.")
        exec(match[0], namespace)
    return [namespace[name] for name in names]


class Language(NamedTuple):
    """The small language of the page about sequences."""

    log_probs: Callable[[tuple[int, ...]], np.ndarray]
    end: int
    names: tuple[str, ...]


def language() -> Language:
    """Return the language of the page's example."""
    page = (_PAGES / "sequence-to-sequence.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    namespace: dict[str, Any] = {"np": np}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(next(block for block in blocks if "\ntable = " in block), namespace)
    return Language(namespace["log_probs"], namespace["END"], ("a", "b", "end"))


class Poolings(NamedTuple):
    """States, a query, the winner of each component, and the weights of each pooling."""

    states: np.ndarray
    query: np.ndarray
    winners: np.ndarray
    weights: dict[str, np.ndarray]


def poolings() -> Poolings:
    """Pool the first sentence of the page's example; all matrices and the query are random."""
    random, states = page_values("focus-and-saliency.md", ["random", "states"])
    H = states[0]
    W, q = random.normal(size=(H.shape[1], H.shape[1])), random.normal(size=H.shape[1])
    W_1, W_2 = random.normal(size=(8, H.shape[1])), random.normal(size=(2, 8))
    weights = {
        "mean": mean_pooling(H)[1],
        "max": max_pooling(H)[1],
        "gate": gate_pooling(H, W, np.zeros(H.shape[1]))[1],
        "self_attention": self_attentive_pooling(H, W_1, W_2)[1],
        "top_down": top_down_pooling(H, q)[1],
    }
    return Poolings(H, q, H.argmax(axis=0), weights)


class ForcedSteps(NamedTuple):
    """The target, the distribution of each step, and the log-probability of each token."""

    target: tuple[int, ...]
    distributions: list[np.ndarray]
    log_probs: np.ndarray


def forced_steps() -> ForcedSteps:
    """Score the target a, b, end of the page's language with teacher forcing."""
    log_probs, end, names = language()
    target = (names.index("a"), names.index("b"), end)
    distributions = []

    def step(previous: int | None, prefix: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
        prefix = prefix if previous is None else (*prefix, previous)
        distributions.append(np.exp(log_probs(prefix)))
        return log_probs(prefix), prefix

    scores = teacher_forcing(step, (), target, None)
    return ForcedSteps(target, distributions, scores)


class Tree(NamedTuple):
    """All prefixes with their probabilities, those of a beam, and the results of the searches."""

    probabilities: dict[tuple[int, ...], float]
    beam: set[tuple[int, ...]]
    greedy: tuple[int, ...]
    best: tuple[int, ...]


def search_tree(limit: int = 3, size: int = 2) -> Tree:
    """Record which prefixes a beam search extends, in the page's language."""
    log_probs, end, _ = language()
    extended: dict[tuple[int, ...], np.ndarray] = {}

    def record(prefix: tuple[int, ...]) -> np.ndarray:
        return extended.setdefault(prefix, log_probs(prefix))

    best = beam_search(record, end, limit, size)[0][0]
    greedy = greedy_search(log_probs, end, limit)[0]
    totals: dict[tuple[int, ...], float] = {(): 0.0}
    for prefix in sorted(extended, key=len):
        for token, score in enumerate(extended[prefix]):
            totals[(*prefix, token)] = totals[prefix] + float(score)
    probabilities = {prefix: float(np.exp(total)) for prefix, total in totals.items()}
    return Tree(probabilities, set(extended), greedy, best)


def influence(words: int = 5, depth: int = 4, units: int = 4, samples: int = 200) -> np.ndarray:
    """Return how much word i changes both halves of annotation j, ``[half, j, i]``.

    The mean distance over random GRUs and words, of which one at a time becomes another word. Each
    half is divided by its largest number.
    """
    random = np.random.default_rng(1)
    change = np.zeros((2, words, words))
    for _ in range(samples):
        cells = [
            _gru(random.normal(size=(3 * units, depth)), random.normal(size=(3 * units, units)))
            for _ in range(2)
        ]
        X, other_words = random.normal(size=(2, words, depth))
        before = annotations(X, *cells, np.zeros(units))
        for i in range(words):
            other = X.copy()
            other[i] = other_words[i]
            difference = annotations(other, *cells, np.zeros(units)) - before
            halves = np.split(difference, 2, axis=1)
            change[:, :, i] += [np.linalg.norm(half, axis=1) for half in halves]
    return change / change.max(axis=(1, 2), keepdims=True)


def _gru(W: np.ndarray, U: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    W, U = W / np.sqrt(W.shape[1]), U / np.sqrt(U.shape[1])
    b, b_h = np.zeros(len(W)), np.zeros(len(W) // 3)
    return lambda x, h: gru_step(x, h, W, U, b, b_h)


class Lookup(NamedTuple):
    """One query, the keys and values of three positions, and what attention computes."""

    query: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    context: np.ndarray


def lookup() -> Lookup:
    """Attend with the second key, as in the page's example."""
    K, V = (each[0] for each in page_values("self-attention.md", ["keys", "values"]))
    q = K[1]
    context, weights = attend(q, K, V, dot, softmax)
    return Lookup(q, K, V, np.array([dot(q, k) for k in K]), weights, context)


class Costs(NamedTuple):
    """Operations and longest paths of layers by the number of positions, Vaswani et al. 2017."""

    lengths: np.ndarray
    operations: dict[str, np.ndarray]
    paths: dict[str, np.ndarray]


DEPTH, KERNEL, NEIGHBOURS = 512, 3, 64


def costs() -> Costs:
    """Evaluate the formulas of the page's table for lengths from 4 to 8,192."""
    n = 2.0 ** np.arange(2, 14)
    d, k, r = DEPTH, KERNEL, NEIGHBOURS
    operations = {
        "self-attention": n**2 * d,
        "recurrence": n * d**2,
        "convolution": k * n * d**2,
        "neighbours": np.minimum(r, n) * n * d,
    }
    paths = {
        "self-attention": np.ones_like(n),
        "recurrence": n,
        "convolution": np.log(n) / np.log(k),
        "neighbours": np.maximum(n / r, 1),
    }
    return Costs(n, operations, paths)


class Mask(NamedTuple):
    """Where positions may attend, what is added to the scores, and the weights."""

    allowed: np.ndarray
    added: np.ndarray
    weights: np.ndarray


def masks(length: int = 5, valid: int = 3, depth: int = 8) -> dict[str, Mask]:
    """Attend with the same random queries and keys under a padding mask and a causal mask."""
    Q, K, V = np.random.default_rng(1).normal(size=(3, length, depth))
    padding = np.broadcast_to(np.arange(length) < valid, (length, length))
    result = {}
    for name, allowed in (("padding", padding), ("causal", causal_mask(length))):
        weights = attention(Q, K, V, allowed)[1]
        result[name] = Mask(allowed, np.where(allowed, 0, -np.inf), weights)
    return result


POSITIONS, COMPONENTS = 40, 32


def sinusoid_map() -> np.ndarray:
    """Return the sinusoids of 40 positions and 32 components."""
    return sinusoids(POSITIONS, COMPONENTS)


def rotated(steps: int = 7) -> np.ndarray:
    """Turn pairs (1, 0) by the angles of the first positions, ``[position, pair, 2]``."""
    half = COMPONENTS // 2
    pairs = np.repeat([[1.0] * half + [0.0] * half], steps, axis=0)
    return rotate(pairs, np.arange(steps)).reshape(steps, 2, half).transpose(0, 2, 1)
