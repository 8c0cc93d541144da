from __future__ import annotations

import pytest

from components.evaluator import blessing
from models.metrics import Metric


def bleu(value: float) -> Metric:
    return Metric("bleu", "BLEU", value, "signature")


def exact(value: float) -> Metric:
    return Metric("exact_match", "exact match", value, "signature", scale=1.0)


def ter(value: float) -> Metric:
    return Metric("ter", "TER", value, "signature", higher_is_better=False)


def test_the_sentence_of_a_blessed_model():
    verdicts = blessing.floors({"bleu": bleu(33.1)}, {"bleu": 30.0})
    verdicts += blessing.not_worse(bleu(33.1), bleu(32.8), 0.0, "3")
    decision = blessing.bless(verdicts)
    assert decision.blessed
    assert decision.sentence == (
        "Blessed: BLEU 33.1 is over the floor of 30.0 and not worse than version 3 (32.8)."
    )
    assert decision.to_dict()["reasons"][0] == {
        "rule": "floors",
        "passed": True,
        "reason": "BLEU 33.1 is over the floor of 30.0",
        "metric": "bleu",
        "value": 33.1,
        "bound": 30.0,
        "slice": None,
        "rows": None,
    }


def test_a_refusal_names_only_what_is_against_it():
    candidate = {"bleu": bleu(12.3), "exact_match": exact(0.98)}
    verdicts = blessing.floors(candidate, {"bleu": 30.0, "exact_match": 0.97})
    decision = blessing.bless(verdicts)
    assert not decision.blessed
    assert decision.sentence == "Not blessed: BLEU 12.3 is under the floor of 30.0."
    assert len(decision.reasons) == 2


def test_two_metrics_each_have_their_subject():
    candidate = {"bleu": bleu(12.3), "exact_match": exact(0.5)}
    verdicts = blessing.floors(candidate, {"bleu": 30.0, "exact_match": 0.97})
    assert blessing.bless(verdicts).sentence == (
        "Not blessed: BLEU 12.3 is under the floor of 30.0,"
        " and exact match 0.500 is under the floor of 0.970."
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "tolerance", "passed", "words"),
    [
        (33.1, 32.8, 0.0, True, "not worse than version 3 (32.8)"),
        (32.8, 32.8, 0.0, True, "not worse than"),
        (32.5, 32.8, 0.5, True, "within the tolerance of 0.5 of version 3 (32.8)"),
        (32.0, 32.8, 0.5, False, "worse than version 3 (32.8) by more than the tolerance of 0.5"),
        (32.7, 32.8, 0.0, False, "BLEU 32.7 is worse than version 3 (32.8)"),
        (float("nan"), 32.8, 0.0, False, "worse than"),
    ],
)
def test_production(ours, theirs, tolerance, passed, words):
    (verdict,) = blessing.not_worse(bleu(ours), bleu(theirs), tolerance, "3")
    assert verdict.passed is passed
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("p_value", "passed", "reason"),
    [
        (0.21, True, "BLEU 31.0 is not significantly worse than version 3 (32.8), p = 0.210"),
        (0.05, True, "BLEU 31.0 is not significantly worse than version 3 (32.8), p = 0.050"),
        (0.001, False, "BLEU 31.0 is worse than version 3 (32.8), p = 0.001"),
        (None, False, "BLEU 31.0 is worse than version 3 (32.8)"),
    ],
)
def test_a_loss_may_be_chance(p_value, passed, reason):
    (verdict,) = blessing.not_worse(bleu(31.0), bleu(32.8), 0.0, "3", p_value, 0.05)
    assert (verdict.passed, verdict.reason) == (passed, reason)


def test_a_gain_needs_no_chance_and_what_is_undefined_has_none():
    (verdict,) = blessing.not_worse(bleu(33.0), bleu(32.8), 0.0, "3", 0.4)
    assert verdict.reason == "BLEU 33.0 is not worse than version 3 (32.8)"
    (verdict,) = blessing.not_worse(bleu(float("nan")), bleu(32.8), 0.0, "3", 0.4)
    assert not verdict.passed


def test_a_loss_that_no_test_can_judge_is_chance_in_a_slice_alone():
    nan, where = float("nan"), blessing.Where("domain=few", 3)
    (verdict,) = blessing.not_worse(exact(nan), exact(0.9), 0.0, "3", where=where, tested=True)
    assert verdict.passed
    assert verdict.reason == (
        "exact match nan in domain=few (3 rows) is not known to be worse than version 3 (0.900):"
        " it cannot be told from chance"
    )
    (verdict,) = blessing.not_worse(exact(0.1), exact(0.9), 0.0, "3", where=where, tested=True)
    assert verdict.passed
    assert not blessing.not_worse(exact(nan), exact(0.9), 0.0, "3", where=where)[0].passed
    assert not blessing.not_worse(exact(nan), exact(0.9), 0.0, "3", tested=True)[0].passed


def test_lower_can_be_better():
    (verdict,) = blessing.floors({"ter": ter(55.0)}, {"ter": 50.0})
    assert not verdict.passed
    assert verdict.reason == "TER 55.0 is over the ceiling of 50.0"
    assert blessing.floors({"ter": ter(45.0)}, {"ter": 50.0})[0].passed
    assert blessing.not_worse(ter(51.0), ter(50.0), 1.0, "1")[0].passed
    assert not blessing.not_worse(ter(51.1), ter(50.0), 1.0, "1")[0].passed


def test_numbers_that_differ_are_written_differently():
    (verdict,) = blessing.floors({"bleu": bleu(29.96)}, {"bleu": 30.0})
    assert verdict.reason == "BLEU 29.96 is under the floor of 30.00"
    (verdict,) = blessing.floors({"bleu": bleu(30.0)}, {"bleu": 30.0})
    assert (verdict.passed, verdict.reason) == (True, "BLEU 30.0 just reaches the floor of 30.0")


def test_nothing_to_compare_with():
    assert blessing.bless([]).sentence == (
        "Blessed: there is no floor and no model in production to compare with."
    )


def test_a_production_model_that_failed_does_not_count_against():
    decision = blessing.bless(blessing.no_comparison("3", "OSError: no such file\n  at x"))
    assert decision.blessed
    assert "version 3 could not be decoded" in decision.sentence
    assert "\n" not in decision.sentence


def test_a_metric_without_a_value_is_against_the_model():
    nan = Metric(
        "pearson", "Pearson", float("nan"), "nrefs:1|undefined:all hypotheses are the same"
    )
    assert blessing.undefined({"bleu": bleu(1.0)}) == []
    (verdict,) = blessing.undefined({"bleu": bleu(1.0), "pearson": nan})
    assert not verdict.passed
    assert "all hypotheses are the same" in verdict.reason


def test_a_production_model_without_a_value_stands_in_nobodys_way():
    (verdict,) = blessing.not_worse(bleu(1.0), bleu(float("nan")), 0.0, "3")
    assert verdict.passed
    assert verdict.reason == "BLEU of version 3 is undefined, so there is no comparison"
    why = Metric("bleu", "BLEU", float("nan"), "nrefs:1|undefined:nothing was said")
    (verdict,) = blessing.not_worse(bleu(1.0), why, 0.0, "3")
    assert verdict.passed
    assert verdict.reason == (
        "BLEU of version 3 is undefined (nothing was said), so there is no comparison"
    )
