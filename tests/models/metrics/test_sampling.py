"""Statistics that sum up to the metric, and samples that are sacreBLEU's."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from models.metrics import METRICS, Rows, Scorer, sampling

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
OPTIONS = {"alignment": {"gold": "links", "unit": "word"}}


def of(name, rows):
    return Scorer(METRICS[name], rows, {})


def rows_for(name):
    if name == "aer":
        return ALIGNED
    if name == "pointing":
        return CAPTIONS
    if name == "perplexity":
        return FORCED
    if METRICS[name].answers == "positions":
        return HULLS if name.startswith("hull") else TOURS
    return RATED if METRICS[name].answers == "number" else TEXTS


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_the_sum_of_the_statistics_gives_the_metric(name, lowercase):
    kind, rows = METRICS[name], rows_for(name)
    options = {**OPTIONS, "lowercase": lowercase}
    if kind.statistics is None:
        assert name == "spearman"
        return
    value, _ = kind.function(rows, options)
    found = kind.statistics(rows, options)
    assert len(found.rows) == len(rows.hypotheses)
    assert found.value(found.rows.sum(axis=0)) == pytest.approx(value)
    # And of any sample: rows may be drawn twice.
    chosen = [0, 3, 3, 5, 4, 1]
    expected, _ = kind.function(rows.take(chosen), options)
    assert found.value(found.rows[chosen].sum(axis=0)) == pytest.approx(expected)


@pytest.mark.parametrize("name", METRICS)
def test_the_value_lies_in_its_interval(name):
    kind, rows = METRICS[name], rows_for(name)
    value, _ = kind.function(rows, OPTIONS)
    found = sampling.interval(Scorer(kind, rows, OPTIONS), samples=200)
    assert found.low <= value <= found.high
    assert found.low < found.high or value in (kind.low, kind.high)
    assert found == sampling.interval(Scorer(kind, rows, OPTIONS), samples=200)


@pytest.mark.parametrize(("name", "metric"), [("bleu", BLEU()), ("chrf", CHRF())])
def test_intervals_are_sacrebleus(name, metric):
    score = metric.corpus_score(TEXTS.hypotheses, [REFERENCES], n_bootstrap=500)
    found = sampling.interval(of(name, TEXTS), samples=500)
    assert (found.high - found.low) / 2 == pytest.approx(score._ci, abs=1e-3)


SLIGHTLY = [Rows([noisy(text, 0.23) for text in REFERENCES], TEXTS.references) for _ in range(5)]


@pytest.mark.parametrize("other", [WORSE, *SLIGHTLY], ids=lambda _: "")
def test_randomization_is_sacrebleus(other):
    systems = [("one", TEXTS.hypotheses), ("other", other.hypotheses)]
    metrics = {"BLEU": BLEU(), "chrF2": CHRF()}
    _, scores = PairedTest(systems, metrics, [REFERENCES], "ar", n_samples=1000)()
    for name, label in (("bleu", "BLEU"), ("chrf", "chrF2")):
        found = sampling.p_value(of(name, TEXTS), of(name, other), "randomization", 1000)
        # Other draws: of two p-values of 1,000 samples each.
        assert found == pytest.approx(scores[label][1].p_value, abs=0.08)


def test_some_of_these_are_neither_sure_nor_chance():
    found = [
        sampling.p_value(of("chrf", TEXTS), of("chrf", other), test, 300)
        for other in SLIGHTLY
        for test in sampling.TESTS
    ]
    assert sum(0.1 < p < 0.9 for p in found) >= 3


@pytest.mark.parametrize("test", sampling.TESTS)
def test_where_there_is_no_difference_few_are_found(test):
    """Two models with errors of one size: 5% of such pairs may be called different at 0.05."""
    draw = np.random.default_rng(7)
    called = 0
    for _ in range(200):
        sides = [Rows(draw.normal(size=60).tolist(), [[0.0]] * 60) for _ in range(2)]
        called += sampling.p_value(*(of("mse", side) for side in sides), test, 99) <= 0.05
    assert 2 <= called <= 22


def test_of_a_few_rows_randomization_says_little():
    right = Rows(["a"] * 8, [["a"]] * 8)
    wrong = Rows(["b"] * 3 + ["a"] * 5, [["a"]] * 8)
    assert (
        sampling.p_value(of("exact_match", right), of("exact_match", wrong), "randomization") > 0.2
    )


def test_the_same_answers_are_no_difference():
    for test in sampling.TESTS:
        assert sampling.p_value(of("bleu", TEXTS), of("bleu", TEXTS), test, 100) == 1.0


def test_a_metric_without_sums_is_tested_by_its_rows():
    shuffled = Rows(RATED.hypotheses[::-1], RATED.references)
    for test in sampling.TESTS:
        assert sampling.p_value(of("spearman", RATED), of("spearman", shuffled), test, 200) < 0.05
        assert sampling.p_value(of("pearson", RATED), of("pearson", shuffled), test, 200) < 0.05


def test_of_what_is_undefined_nothing_is_said():
    flat = Rows([1.0] * 40, RATED.references)
    assert sampling.p_value(of("pearson", RATED), of("pearson", flat)) is None
    assert sampling.interval(of("pearson", flat), 50) is None
    crossing = Rows([[0, 0, 0, 0, 0]] * 8, TOURS.references, TOURS.columns)
    assert math.isnan(METRICS["tour_length"].function(crossing, {})[0])
    assert sampling.p_value(of("tour_length", TOURS), of("tour_length", crossing)) is None
    one_bad = Rows([*TOURS.hypotheses[:-1], [0, 0, 0, 0, 0]], TOURS.references, TOURS.columns)
    assert sampling.interval(of("tour_length", one_bad), 50) is None


def test_holm_is_that_of_the_paper():
    """Of the level 0.05, 0.01 is held against 0.05 / 4, 0.02 against 0.05 / 3, and so on."""
    assert sampling.holm([0.04, 0.01, 0.02, 0.9]) == pytest.approx([0.08, 0.04, 0.06, 0.9])
    # One that is not significant alone is not made so by a worse one before it.
    assert sampling.holm([0.03, 0.03, 0.001]) == pytest.approx([0.06, 0.06, 0.003])
    assert sampling.holm([0.7, 0.8]) == [1.0, 1.0]
    assert (sampling.holm([0.2]), sampling.holm([])) == ([0.2], [])


def test_of_many_tests_of_no_difference_holm_finds_one_at_its_level():
    draw = np.random.default_rng(3)
    found = [min(sampling.holm(draw.random(12).tolist())) < 0.05 for _ in range(2000)]
    assert 0.03 < np.mean(found) < 0.07
