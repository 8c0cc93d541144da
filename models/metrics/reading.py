"""Metrics of reading comprehension: exact match, token F1, and attention on supporting sentences.

Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", §6.1. Answers
are compared as SQuAD's evaluation script does: lower case, without ASCII punctuation and without
the English articles, with single spaces. The best of several references counts. In scripts without
spaces, such as Chinese, each character counts as a word of the F1.
"""

import functools
import re
import string
from collections import Counter
from collections.abc import Iterable

from regard.models.metrics import base
from regard.models.vocabulary import UNSPACED

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SIGNATURE = "|norm:squad"
_COLUMNS = ("alignment", "passage_begins", "supporting")


def normalize_answer(text: str) -> str:
    """Return an answer as SQuAD compares it."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def squad_exact_match(rows: base.Rows, options: base.MetricOptions) -> base.Statistics:
    """Compute the share of answers that equal a reference after normalisation, 0 to 1."""
    return base.match_statistics(rows, normalize_answer, _SIGNATURE)


def squad_f1(rows: base.Rows, options: base.MetricOptions) -> base.Statistics:
    """Compute the mean F1 of the words of answer and reference, 0 to 1."""
    pairs = zip(rows.hypotheses, rows.references, strict=True)
    scores = [_best_token_f1(output, references) for output, references in pairs]
    return base.mean_statistics(scores, f"nrefs:{rows.reference_count()}{_SIGNATURE}")


@functools.cache
def _unspaced() -> re.Pattern[str]:
    import regex  # the standard library's `re` knows no scripts

    return regex.compile(f"[{UNSPACED}]")


def _split_words(answer: str) -> list[str]:
    """Return the words of an answer; each character of scripts without spaces is a word."""
    return _unspaced().sub(r" \g<0> ", normalize_answer(answer)).split()


def _best_token_f1(output: str, references: Iterable[str]) -> float:
    return max(_token_f1(output, reference) for reference in references)


def _token_f1(output: str, reference: str) -> float:
    words, expected = _split_words(output), _split_words(reference)
    if not words or not expected:
        return float(words == expected)
    common = (Counter(words) & Counter(expected)).total()
    return 2 * common / (len(words) + len(expected))


def supporting_attention(rows: base.Rows, options: base.MetricOptions) -> base.Statistics:
    """Compute the share of the attention that lies on supporting sentences, 0 to 1.

    The mean over all steps of a row, which are hops, begin and end. A token counts if it begins in
    a supporting sentence. Rows without supporting sentences do not count.

    Raises:
        ValueError: a column is missing.
    """
    import numpy as np

    if missing := [name for name in _COLUMNS if name not in rows.columns]:
        raise ValueError(f"supporting_attention needs the column {missing[0]!r}, which is missing")
    pairs = np.zeros([len(rows.hypotheses), 2])
    columns = zip(*(rows.columns[name] for name in _COLUMNS), strict=True)
    for row, (weights, begins, edges) in enumerate(columns):
        starts, total = np.asarray(begins), np.sum(weights, dtype="float64")
        if not edges or not total:
            continue
        ranges = zip(edges[::2], edges[1::2], strict=True)
        inside = np.any([(starts >= low) & (starts < high) for low, high in ranges], axis=0)
        pairs[row] = np.sum(weights * inside, dtype="float64") / total, 1
    count = int(pairs[:, 1].sum())
    signature = f"rows:{count} of {len(pairs)}"
    signature += "" if count else "|undefined:no row has supporting sentences"
    return base.Statistics(signature, pairs, base.ratio)
