"""Row statistics of the metrics, confidence intervals and significance tests."""

import dataclasses
import itertools
import json
import math
import typing

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from regard.models.metrics import METRICS, GoldAlignment, MetricOptions, Rows, Scorer, significance

TESTS = typing.get_args(significance.Test)
WORDS = ["a", "man", "rides", "red", "bike", "zwei", "Hunde", "laufen", "the", "end", "of", "it"]
DRAW = np.random.default_rng(4)


def sentence(length):
    return " ".join(DRAW.choice(WORDS, length))


def noisy(text, share):
    return " ".join(word if DRAW.random() > share else "x" for word in text.split())


REFERENCES = [sentence(DRAW.integers(4, 12)) for _ in range(60)]
TEXTS = Rows([noisy(text, 0.2) for text in REFERENCES], [[text] for text in REFERENCES])
WORSE = Rows([noisy(text, 0.4) for text in REFERENCES], [[text] for text in REFERENCES])
NUMBERS = [float(x) for x in DRAW.normal(size=40)]
RATED = Rows([x + float(DRAW.normal()) for x in NUMBERS], [[x] for x in NUMBERS])
POINTS = [[[0.0, 0.0], [1.0, 0.1], [1.1, 1.0], [0.0, 0.9], [0.5, 0.5]]] * 8
TOURS = Rows([[0, 1, 2, 4, 3], [0, 2, 1, 3, 4]] * 4, [[[0, 1, 2, 4, 3]]] * 8, {"points": POINTS})
HULLS = Rows([[0, 1, 2, 3], [0, 2, 1, 3]] * 4, [[[0, 1, 2, 3]]] * 8, {"points": POINTS})
CAPTIONS = Rows(
    ["a red circle", "a blue square"] * 3,
    [["a red circle"]] * 6,
    {
        "pieces": [["▁red", "▁circle", "</s>"]] * 6,
        "alignment": [DRAW.random((3, 4, 4)).tolist() for _ in range(6)],
        "boxes": [
            json.dumps([{"phrase": phrase, "box": [0.1, 0.2, 0.6, 0.7]}])
            for phrase in ("red circle", "blue", "circle") * 2
        ],
    },
)


ALIGNED = Rows(
    TEXTS.hypotheses[:20],
    TEXTS.references[:20],
    {
        "forced_alignment": [DRAW.random((4, 4)).tolist() for _ in range(20)],
        "forced_source_pieces": [["▁a", "▁b", "▁c", "</s>"]] * 20,
        "forced_target_pieces": [["▁x", "▁y", "▁z", "</s>"]] * 20,
        "links": ["0-0 1-1 2-2", "0-0 2p1"] * 10,
    },
)
FORCED = Rows(
    ["a"] * 20,
    [["a"]] * 20,
    {
        "forced_score": [-0.1 * n for n in range(20)],
        "forced_length": [1 + n % 3 for n in range(20)],
    },
)
PASSAGES = Rows(
    ["a"] * 20,
    [["a"]] * 20,
    {
        "alignment": [[[0.1 + n / 25, 0.9 - n / 25]] for n in range(20)],
        "passage_begins": [[0, 4]] * 20,
        "supporting": [[4, 7] if n % 4 else [] for n in range(20)],
    },
)
OPTIONS = MetricOptions(alignment=GoldAlignment("links", "word"))


def scorer(name, rows):
    return Scorer(METRICS[name], rows, MetricOptions())


def rows_for(name):
    if name == "aer":
        return ALIGNED
    if name == "pointing":
        return CAPTIONS
    if name == "supporting_attention":
        return PASSAGES
    if name == "perplexity":
        return FORCED
    if METRICS[name].output_kind == "positions":
        return HULLS if name.startswith("hull") else TOURS
    return RATED if METRICS[name].output_kind == "number" else TEXTS


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_statistics_sum_to_the_metric(name, lowercase):
    spec, rows = METRICS[name], rows_for(name)
    options = dataclasses.replace(OPTIONS, lowercase=lowercase)
    result = spec.compute(rows, options)
    if name == "spearman":
        assert result.rows is None
        return
    assert len(result.rows) == len(rows.hypotheses)
    assert result.value(result.rows.sum(axis=0)) == pytest.approx(result.corpus_value())
    # Also for a sample that contains a row twice.
    indices = [0, 3, 3, 5, 4, 1]
    expected = spec.compute(rows.take(indices), options).corpus_value()
    assert result.value(result.rows[indices].sum(axis=0)) == pytest.approx(expected)


@pytest.mark.parametrize("name", METRICS)
def test_the_interval_contains_the_value(name):
    spec, rows = METRICS[name], rows_for(name)
    value = spec.compute(rows, OPTIONS).corpus_value()
    result = significance.confidence_interval(Scorer(spec, rows, OPTIONS), samples=200)
    assert result.low <= value <= result.high
    assert result.low < result.high or value in (spec.low, spec.high)
    assert result == significance.confidence_interval(Scorer(spec, rows, OPTIONS), samples=200)


@pytest.mark.parametrize(("name", "metric"), [("bleu", BLEU()), ("chrf", CHRF())])
def test_intervals_equal_sacrebleu(name, metric):
    score = metric.corpus_score(TEXTS.hypotheses, [REFERENCES], n_bootstrap=500)
    result = significance.confidence_interval(scorer(name, TEXTS), samples=500)
    assert (result.high - result.low) / 2 == pytest.approx(score._ci, abs=1e-3)


SLIGHTLY = [Rows([noisy(text, 0.23) for text in REFERENCES], TEXTS.references) for _ in range(5)]


@pytest.mark.parametrize("other", [WORSE, *SLIGHTLY], ids=lambda _: "")
def test_randomization_agrees_with_sacrebleu(other):
    systems = [("one", TEXTS.hypotheses), ("other", other.hypotheses)]
    metrics = {"BLEU": BLEU(), "chrF2": CHRF()}
    _, scores = PairedTest(systems, metrics, [REFERENCES], "ar", n_samples=1000)()
    for name, label in (("bleu", "BLEU"), ("chrf", "chrF2")):
        result = significance.p_value(
            scorer(name, TEXTS), scorer(name, other), "randomization", 1000
        )
        # The samples differ, so the p-values agree only approximately.
        assert result == pytest.approx(scores[label][1].p_value, abs=0.08)


@pytest.mark.parametrize("test", TESTS)
def test_equal_models_are_rarely_called_different(test):
    """About 5% of pairs of equally good models may differ at a level of 0.05."""
    draw = np.random.default_rng(7)
    rejected = 0
    for _ in range(200):
        sides = [Rows(draw.normal(size=60).tolist(), [[0.0]] * 60) for _ in range(2)]
        rejected += significance.p_value(*(scorer("mse", side) for side in sides), test, 99) <= 0.05
    assert 2 <= rejected <= 22


def test_randomization_is_cautious_with_few_rows():
    right = Rows(["a"] * 8, [["a"]] * 8)
    wrong = Rows(["b"] * 3 + ["a"] * 5, [["a"]] * 8)
    scorers = (scorer("exact_match", rows) for rows in (right, wrong))
    assert significance.p_value(*scorers, "randomization") > 0.2


def test_equal_outputs_have_p_value_one():
    for test in TESTS:
        assert significance.p_value(scorer("bleu", TEXTS), scorer("bleu", TEXTS), test, 100) == 1.0


def test_metrics_without_statistics_are_tested_by_rows():
    shuffled = Rows(RATED.hypotheses[::-1], RATED.references)
    for test, name in itertools.product(TESTS, ("spearman", "pearson")):
        scorers = (scorer(name, rows) for rows in (RATED, shuffled))
        assert significance.p_value(*scorers, test, 200) < 0.05


def test_undefined_metrics_have_no_interval_and_no_p_value():
    flat = Rows([1.0] * 40, RATED.references)
    assert significance.p_value(scorer("pearson", RATED), scorer("pearson", flat)) is None
    assert significance.confidence_interval(scorer("pearson", flat), 50) is None
    crossing = Rows([[0, 0, 0, 0, 0]] * 8, TOURS.references, TOURS.columns)
    assert math.isnan(scorer("tour_length", crossing).value)
    scorers = (scorer("tour_length", rows) for rows in (TOURS, crossing))
    assert significance.p_value(*scorers) is None
    one_bad = Rows([*TOURS.hypotheses[:-1], [0, 0, 0, 0, 0]], TOURS.references, TOURS.columns)
    assert significance.confidence_interval(scorer("tour_length", one_bad), 50) is None


def test_holm_follows_the_paper():
    """At a level of 0.05, 0.01 is compared with 0.05 / 4, 0.02 with 0.05 / 3, and so on."""
    assert significance.holm([0.04, 0.01, 0.02, 0.9]) == pytest.approx([0.08, 0.04, 0.06, 0.9])
    # A smaller p-value does not make another one significant.
    assert significance.holm([0.03, 0.03, 0.001]) == pytest.approx([0.06, 0.06, 0.003])
    assert significance.holm([0.7, 0.8]) == [1.0, 1.0]
    assert (significance.holm([0.2]), significance.holm([])) == ([0.2], [])
