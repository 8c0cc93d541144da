"""chrF of pairs, compared with sacreBLEU, and against averages, compared with counters."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from regard.models.metrics.chrf_pairs import BETA, ORDER, aggregate_chrf, pairwise_chrf

TEXTS = [
    "a b",
    "abc abc abc",
    "",
    "  ",
    "Ein Hund läuft.",
    "Der Hund läuft im Schnee!",
    "雪 中",
    "\ud800",
]
ALPHABET = st.text(st.sampled_from("ab c\u3000ä☃"), max_size=12)


def ngrams(text):
    text = "".join(text.split())
    return [Counter(text[i : i + n] for i in range(len(text) - n + 1)) for n in range(1, ORDER + 1)]


def aggregate_reference(texts, weights):
    """chrF with the weighted mean of the counts of all texts as the reference."""
    counts = [ngrams(text) for text in texts]
    results = []
    for own in counts:
        precisions, recalls = [], []
        for n in range(ORDER):
            mean = Counter()
            for other, weight in zip(counts, weights, strict=True):
                for ngram, count in other[n].items():
                    mean[ngram] += weight * count
            total, average = sum(own[n].values()), sum(mean.values())
            if total and average:
                matches = sum(min(count, mean[ngram]) for ngram, count in own[n].items())
                precisions.append(matches / total)
                recalls.append(matches / average)
        p, r = (np.mean(x) if x else 0.0 for x in (precisions, recalls))
        denominator = BETA**2 * p + r
        results.append(100 * (1 + BETA**2) * p * r / denominator if denominator else 0.0)
    return results


@settings(deadline=None, max_examples=30)
@given(st.lists(ALPHABET, min_size=1, max_size=5))
def test_pairs_are_those_of_sacrebleu(texts):
    metric = CHRF()
    expected = [[metric.sentence_score(text, [other]).score for other in texts] for text in texts]
    np.testing.assert_allclose(pairwise_chrf(texts), expected, rtol=1e-12, atol=1e-12)


def test_pairs_of_unusual_texts():
    metric = CHRF()
    expected = [[metric.sentence_score(text, [other]).score for other in TEXTS] for text in TEXTS]
    np.testing.assert_allclose(pairwise_chrf(TEXTS), expected, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.lists(ALPHABET, min_size=1, max_size=5, unique=True), st.integers(0, 9))
def test_aggregated_references(texts, seed):
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(texts)))
    expected = aggregate_reference(texts, weights)
    np.testing.assert_allclose(aggregate_chrf(texts, weights), expected, rtol=1e-9, atol=1e-9)


def test_one_reference_is_no_average():
    text = "Der Hund läuft."
    assert aggregate_chrf([text], np.ones(1))[0] == pytest.approx(100)
    texts, first = TEXTS[:6], np.eye(6)[4]
    np.testing.assert_allclose(aggregate_chrf(texts, first), pairwise_chrf(texts)[:, 4], atol=1e-9)
