from __future__ import annotations

import json

import pytest

from regard.components.evaluator import gate
from regard.components.evaluator.scoring import (
    ModelScores,
    compare,
    compared_slices,
    score_slices,
)
from regard.components.evaluator.slices import Slice
from regard.components.settings.evaluation import EvaluationConfig, ProductionComparisonConfig
from regard.models.metrics import Metric, Rows

# Of 40 rows the first 20 are news; the last two are a slice of their own.
NEWS, TALK, FEW = (
    Slice("domain", name, list(rows))
    for name, rows in (("news", range(20)), ("talk", range(20, 38)), ("few", range(38, 40)))
)
LONG = Slice("length", "31+", list(range(10, 40)))
SLICES = [NEWS, TALK, FEW, LONG]
CONFIG = {"metrics": ["exact_match"], "samples": 200, "production": None}


def rows(wrong):
    """Return 40 outputs, of which some are wrong."""
    outputs = ["no" if row in wrong else "yes" for row in range(40)]
    return Rows(outputs, [["yes"]] * 40)


def section(config):
    return EvaluationConfig.model_validate_json(json.dumps({**CONFIG, **config}))


def decide(config, wrong=(), production=None):
    return decide_on(rows(wrong), None if production is None else rows(production), config)


def decide_on(candidate, production, config):
    """Return the decision about the outputs of two models, and the comparison."""
    config = section(config)
    sides = {"candidate": candidate}
    if production is not None:
        sides["production"] = production
    scores = {name: ModelScores(side, config) for name, side in sides.items()}
    comparison = None
    if production is not None:
        slices = compared_slices(SLICES, config)
        pair = scores["candidate"], scores["production"]
        comparison = compare(*pair, config.production, config.samples, slices)
    metrics = {name: own.metrics for name, own in scores.items()}
    scored = score_slices(scores, SLICES)
    return gate.decide(metrics, scored, comparison, {}, config, version="3"), comparison


def thresholds(**limits):
    return {
        "slices": {"thresholds": {name: {"exact_match": value} for name, value in limits.items()}}
    }


def test_a_threshold_of_a_slice_names_the_slice_and_its_rows():
    decision, _ = decide(thresholds(**{"domain=few": 0.9, "domain=news": 0.9}), wrong=[39])
    assert not decision.blessed
    assert decision.sentence == (
        "Failed: exact match 0.500 in domain=few (2 rows) is below the threshold of 0.900."
    )
    last = decision.verdicts[0]
    assert (last.slice, last.rows, last.metric) == ("domain=few", 2, "exact_match")
    assert (last.value, last.bound) == (0.5, 0.9)


def test_a_kind_selects_all_its_slices():
    decision, _ = decide(thresholds(domain=0.9), wrong=[0, 1, 39])
    assert [(one.slice, one.passed) for one in decision.verdicts] == [
        ("domain=news", True),
        ("domain=talk", True),
        ("domain=few", False),
    ]


def test_passed_slices_are_summarized():
    config = {**thresholds(domain=0.9, length=0.5), "thresholds": {"exact_match": 0.5}}
    decision, _ = decide(config)
    assert decision.sentence == (
        "Passed: exact match 1.000 is above the threshold of 0.500,"
        " and all checks pass in 4 slices."
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("domain=nwes", "rows in domain=nwes; available: domain=news, domain=talk, domain=few."),
        ("pattern=questions", "no rows in pattern=questions."),
    ],
)
def test_a_slice_without_rows_fails(name, reason):
    decision, _ = decide(thresholds(**{name: 0.1}))
    assert not decision.blessed
    assert decision.sentence.endswith(reason)
    production = {"metric": "exact_match", "slices": [name]}
    decision, _ = decide({"production": production}, production=[])
    assert not decision.blessed
    # Without a model in production the slice is not needed.
    assert decide({"production": production})[0].blessed


def production(*slices, **more):
    return {
        "production": {
            "metric": "exact_match",
            "test": "randomization",
            "slices": list(slices),
            **more,
        }
    }


def test_a_loss_in_a_slice_fails_even_if_all_rows_are_equal():
    """News is much worse and talk equally better, so that all rows are equal."""
    config, worse, better = production("domain"), range(12), range(20, 32)
    decision, comparison = decide(config, wrong=worse, production=better)
    assert not decision.blessed
    assert comparison.p_value == 1.0
    tests = {test.name: test for test in comparison.slices}
    assert tests["news"].rows == 20
    assert tests["news"].adjusted_p_value == pytest.approx(3 * tests["news"].p_value)
    assert decision.sentence == (
        "Failed: exact match 0.400 in domain=news (20 rows) is worse than version 3 (1.000),"
        f" Holm’s p = {tests['news'].adjusted_p_value:.3f}."
    )
    assert decide(production("domain=talk"), wrong=worse, production=better)[0].blessed
    assert decide(production(), wrong=worse, production=better)[0].blessed


def test_p_values_of_several_slices_are_adjusted():
    wrong = range(6)  # p is about 0.03
    alone, comparison = decide(production("domain=news"), wrong=wrong, production=[])
    assert 0.05 / 4 < comparison.slices[0].p_value < 0.05
    news = next(one for one in alone.verdicts if one.slice == "domain=news")
    assert not news.passed
    several, comparison = decide(production("domain", "length"), wrong=wrong, production=[])
    news = next(one for one in several.verdicts if one.slice == "domain=news")
    assert news.passed
    assert "not significantly worse" in news.reason


def test_without_a_test_every_loss_fails():
    decision, comparison = decide(production("domain", test=None), wrong=[39], production=[])
    assert [test.p_value for test in comparison.slices] == [None] * 3
    assert [one.slice for one in decision.verdicts if not one.passed] == [None, "domain=few"]


def test_the_samples_grow_with_the_number_of_slices():
    """With 20 samples, 3 times the lowest p-value of 1/21 exceeds the level of 0.05."""
    config = {**production("domain"), "samples": 20}
    decision, _ = decide(config, wrong=range(20), production=[])
    news = next(one for one in decision.verdicts if one.slice == "domain=news")
    assert not news.passed


@pytest.mark.parametrize("missing", [[0], [0, 1], [0, 1, 2, 3]])
def test_slices_are_tested_by_randomization(missing):
    """The bootstrap would call the loss of a single row significant."""
    config = section(production(test="bootstrap"))
    candidate, other = (ModelScores(rows(wrong), config) for wrong in (missing, ()))
    few = Slice("domain", "few", missing)
    comparison = compare(candidate, other, config.production, config.samples, [few])
    (test,) = comparison.slices
    assert (comparison.test, test.test) == ("bootstrap", "randomization")
    assert test.adjusted_p_value > 0.05


def test_the_samples_are_reported_for_slices_and_all_rows():
    """21 slices need 420 samples where all rows need 200."""
    config = section(production())
    sides = [ModelScores(rows(wrong), config) for wrong in ([0], [])]
    slices = [Slice("domain", str(row), [row]) for row in range(21)]
    comparison = compare(*sides, config.production, 200, slices)
    assert comparison.samples == 200
    assert {test.samples for test in comparison.slices} == {420}
    untested = section(production(test=None)).production
    (test,) = compare(*sides, untested, 200, slices[:1]).slices
    assert (test.test, test.samples) == (None, 0)


def test_undefined_metrics_of_small_slices_fail_only_without_a_test():
    """The candidate's outputs are constant in one slice, which has no correlation there."""
    references = [[float(row)] for row in range(40)]
    theirs = [float(row) for row in range(40)]
    ours = [*theirs[:38], 38.0, 38.0]
    for test, blessed in (("randomization", True), ("bootstrap", True), (None, False)):
        production = {"metric": "pearson", "test": test, "slices": ["domain"], "tolerance": 0.1}
        sides = Rows(ours, references), Rows(theirs, references)
        decision, _ = decide_on(*sides, {"metrics": ["pearson"], "production": production})
        assert decision.blessed is blessed, decision.sentence


def bleu(value: float) -> Metric:
    return Metric("bleu", "BLEU", value, "signature")


def exact(value: float) -> Metric:
    return Metric("exact_match", "exact match", value, "signature", scale=1.0)


def ter(value: float) -> Metric:
    return Metric("ter", "TER", value, "signature", higher_is_better=False)


def not_worse(candidate, production, tolerance=0.0, **options):
    config = ProductionComparisonConfig(tolerance=tolerance)
    return gate.check_not_worse(candidate, production, config, "3", **options)


def test_the_sentence_of_a_model_that_passed():
    verdicts = gate.check_thresholds({"bleu": bleu(33.1)}, {"bleu": 30.0})
    verdicts.append(not_worse(bleu(33.1), bleu(32.8)))
    decision = gate.make_decision(verdicts)
    assert decision.blessed
    assert decision.sentence == (
        "Passed: BLEU 33.1 is above the threshold of 30.0 and not worse than version 3 (32.8)."
    )
    assert decision.verdicts[0].model_dump() == {
        "rule": "thresholds",
        "passed": True,
        "reason": "BLEU 33.1 is above the threshold of 30.0",
        "metric": "bleu",
        "value": 33.1,
        "bound": 30.0,
        "slice": None,
        "rows": None,
    }


def test_a_failure_names_only_failed_verdicts():
    candidate = {"bleu": bleu(12.3), "exact_match": exact(0.98)}
    verdicts = gate.check_thresholds(candidate, {"bleu": 30.0, "exact_match": 0.97})
    decision = gate.make_decision(verdicts)
    assert not decision.blessed
    assert decision.sentence == "Failed: BLEU 12.3 is below the threshold of 30.0."
    assert len(decision.verdicts) == 2


def test_different_metrics_keep_their_subjects():
    candidate = {"bleu": bleu(12.3), "exact_match": exact(0.5)}
    verdicts = gate.check_thresholds(candidate, {"bleu": 30.0, "exact_match": 0.97})
    assert gate.make_decision(verdicts).sentence == (
        "Failed: BLEU 12.3 is below the threshold of 30.0,"
        " and exact match 0.500 is below the threshold of 0.970."
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "tolerance", "passed", "text"),
    [
        (33.1, 32.8, 0.0, True, "not worse than version 3 (32.8)"),
        (32.8, 32.8, 0.0, True, "not worse than"),
        (32.5, 32.8, 0.5, True, "within the tolerance of 0.5 of version 3 (32.8)"),
        (32.0, 32.8, 0.5, False, "worse than version 3 (32.8) by more than the tolerance of 0.5"),
        (32.7, 32.8, 0.0, False, "BLEU 32.7 is worse than version 3 (32.8)"),
        (float("nan"), 32.8, 0.0, False, "worse than"),
    ],
)
def test_comparison_with_production(ours, theirs, tolerance, passed, text):
    verdict = not_worse(bleu(ours), bleu(theirs), tolerance)
    assert verdict.passed is passed
    assert text in verdict.reason


@pytest.mark.parametrize(
    ("p_value", "passed", "reason"),
    [
        (0.21, True, "BLEU 31.0 is not significantly worse than version 3 (32.8), p = 0.210"),
        (0.05, True, "BLEU 31.0 is not significantly worse than version 3 (32.8), p = 0.050"),
        (0.001, False, "BLEU 31.0 is worse than version 3 (32.8), p = 0.001"),
        (None, False, "BLEU 31.0 is worse than version 3 (32.8)"),
    ],
)
def test_losses_that_are_not_significant_pass(p_value, passed, reason):
    verdict = not_worse(bleu(31.0), bleu(32.8), p_value=p_value)
    assert (verdict.passed, verdict.reason) == (passed, reason)


def test_gains_pass_and_undefined_metrics_fail():
    verdict = not_worse(bleu(33.0), bleu(32.8), p_value=0.4)
    assert verdict.reason == "BLEU 33.0 is not worse than version 3 (32.8)"
    verdict = not_worse(bleu(float("nan")), bleu(32.8), p_value=0.4)
    assert not verdict.passed


def test_untestable_losses_pass_only_in_slices():
    nan, label = float("nan"), gate.SliceLabel("domain=few", 3)
    verdict = not_worse(exact(nan), exact(0.9), label=label, is_tested=True)
    assert verdict.passed
    assert verdict.reason == (
        "exact match nan in domain=few (3 rows) is not known to be worse than version 3 (0.900):"
        " too few rows for a test"
    )
    assert not_worse(exact(0.1), exact(0.9), label=label, is_tested=True).passed
    assert not not_worse(exact(nan), exact(0.9), label=label).passed
    assert not not_worse(exact(nan), exact(0.9), is_tested=True).passed


def test_metrics_where_lower_is_better():
    (verdict,) = gate.check_thresholds({"ter": ter(55.0)}, {"ter": 50.0})
    assert not verdict.passed
    assert verdict.reason == "TER 55.0 is above the threshold of 50.0"
    assert gate.check_thresholds({"ter": ter(45.0)}, {"ter": 50.0})[0].passed
    assert not_worse(ter(51.0), ter(50.0), 1.0).passed
    assert not not_worse(ter(51.1), ter(50.0), 1.0).passed


def test_close_numbers_are_formatted_distinctly():
    (verdict,) = gate.check_thresholds({"bleu": bleu(29.96)}, {"bleu": 30.0})
    assert verdict.reason == "BLEU 29.96 is below the threshold of 30.00"
    (verdict,) = gate.check_thresholds({"bleu": bleu(30.0)}, {"bleu": 30.0})
    assert (verdict.passed, verdict.reason) == (True, "BLEU 30.0 equals the threshold of 30.0")


def test_without_rules_a_model_passes():
    assert gate.make_decision([]).sentence == (
        "Passed: there is no threshold and no model in production to compare with."
    )


def test_a_production_model_that_fails_is_not_a_failure():
    decision = gate.make_decision([gate.no_comparison("3", "OSError: no such file\n  at x")])
    assert decision.blessed
    assert "version 3 could not be decoded" in decision.sentence
    assert "\n" not in decision.sentence


def test_an_undefined_metric_fails():
    nan = Metric(
        "pearson", "Pearson", float("nan"), "nrefs:1|undefined:all hypotheses are the same"
    )
    assert gate.check_defined({"bleu": bleu(1.0)}) == []
    (verdict,) = gate.check_defined({"bleu": bleu(1.0), "pearson": nan})
    assert not verdict.passed
    assert "all hypotheses are the same" in verdict.reason


def test_an_undefined_metric_of_production_passes():
    verdict = not_worse(bleu(1.0), bleu(float("nan")))
    assert verdict.passed
    assert verdict.reason == "BLEU of version 3 is undefined, so there is no comparison"
    undefined = Metric("bleu", "BLEU", float("nan"), "nrefs:1|undefined:all outputs are empty")
    verdict = not_worse(bleu(1.0), undefined)
    assert verdict.passed
    assert verdict.reason == (
        "BLEU of version 3 is undefined (all outputs are empty), so there is no comparison"
    )
