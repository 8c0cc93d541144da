"""chrF of all pairs of some texts, and of each text against their average, in NumPy.

The definition is sacreBLEU's ``CHRF`` (Popović 2015): character n-grams up to 6 without white
space, β = 2, means of precision and recall over the orders that both texts have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

ORDER, BETA = 6, 2


class NgramCounts(NamedTuple):
    """How often texts contain the n-grams of one order; only counts above 0 are listed.

    Attributes:
        texts: the number of the text of each count, ascending.
        ngrams: the number of the n-gram of each count.
        counts: the counts.
    """

    texts: np.ndarray
    ngrams: np.ndarray
    counts: np.ndarray


def pairwise_chrf(texts: Sequence[str]) -> np.ndarray:
    """Return the exact chrF of each text with each other one as its reference.

    The k-th occurrence of an n-gram in a text is an item of its own. The matches of two texts are
    the items that both have, which one matrix product counts for all pairs.

    Args:
        texts: hypotheses, which are also the references.

    Returns:
        ``[hypothesis, reference]``, 0 to 100.
    """
    size = len(texts)
    matches, totals = np.zeros((ORDER, size, size)), np.zeros((ORDER, size))
    for order, (rows, ngrams, counts) in enumerate(_count_ngrams(texts)):
        rows, items = np.repeat(rows, counts), np.repeat(ngrams, counts)
        occurrences = np.arange(len(items)) - np.repeat(np.cumsum(counts) - counts, counts)
        keys = items * (int(counts.max(initial=0)) + 1) + occurrences
        known, columns = np.unique(keys, return_inverse=True)
        has_item = np.zeros((size, len(known)), np.float32)
        has_item[rows, columns] = 1.0
        matches[order] = has_item @ has_item.T
        totals[order] = np.bincount(rows, minlength=size)
    return _f_scores(matches, totals[:, :, None], totals[:, None, :])


def aggregate_chrf(texts: Sequence[str], weights: np.ndarray) -> np.ndarray:
    """Return the chrF of each text against the average of all of them.

    Vamvas and Sennrich 2024, "Linear-time Minimum Bayes Risk Decoding with Reference Aggregation",
    §3: the counts of n-grams are averaged over the references, as DeNero et al. 2009 do for BLEU.
    The time is linear in the number of texts.

    Args:
        texts: hypotheses, which are also the references.
        weights: ``[texts]``, the share of each reference.

    Returns:
        ``[texts]``, 0 to 100.
    """
    size = len(texts)
    matches, totals, averages = np.zeros((ORDER, size)), np.zeros((ORDER, size)), np.zeros(ORDER)
    for order, (rows, ngrams, counts) in enumerate(_count_ngrams(texts)):
        average = np.bincount(ngrams, counts * weights[rows])
        matches[order] = np.bincount(rows, np.minimum(counts, average[ngrams]), size)
        totals[order] = np.bincount(rows, counts, size)
        averages[order] = average.sum()
    return _f_scores(matches, totals, np.broadcast_to(averages[:, None], totals.shape))


def _count_ngrams(texts: Sequence[str]) -> Iterator[NgramCounts]:
    """Yield the counts of n-grams of each order, from 1 to `ORDER`."""
    # Any text of Python can be encoded so, also one with half a surrogate pair.
    codes = [
        np.frombuffer("".join(text.split()).encode("utf-32-le", "surrogatepass"), "<u4")
        for text in texts
    ]
    lengths = np.array([len(text) for text in codes])
    rows = np.repeat(np.arange(len(texts)), lengths)
    ends = np.repeat(np.cumsum(lengths), lengths)
    known, letters = np.unique(np.concatenate([*codes, np.zeros(0, "<u4")]), return_inverse=True)
    ngrams, starts = letters.astype(np.int64), np.arange(len(rows))
    for order in range(1, ORDER + 1):
        if order > 1:
            is_inside = starts + order <= ends[starts]
            starts, ngrams = starts[is_inside], ngrams[is_inside]
            longer = ngrams * len(known) + letters[starts + order - 1]
            ngrams = np.unique(longer, return_inverse=True)[1]
        size = int(ngrams.max(initial=0)) + 1
        keys, counts = np.unique(rows[starts] * size + ngrams, return_counts=True)
        yield NgramCounts(keys // size, keys % size, counts)


def _f_scores(matches: np.ndarray, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Return chrF from counts of n-grams, with the orders as the first dimension."""
    is_effective = (hypotheses > 0) & (references > 0)
    orders = np.maximum(is_effective.sum(axis=0), 1)
    precision = (matches / np.maximum(hypotheses, 1e-9) * is_effective).sum(axis=0) / orders
    recall = (matches / np.maximum(references, 1e-9) * is_effective).sum(axis=0) / orders
    denominator = BETA**2 * precision + recall
    score = (1 + BETA**2) * precision * recall
    return 100.0 * np.divide(score, denominator, out=np.zeros_like(score), where=denominator > 0)
