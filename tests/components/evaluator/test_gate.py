import json

import pytest

from regard.components.evaluator import gate
from regard.components.evaluator.results import BaselineResult, MetricResult
from regard.components.evaluator.scoring import (
    ModelScores,
    compare,
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
    comparison = compare(scores, SLICES, config)
    metrics = {name: own.metrics for name, own in scores.items()}
    scored = score_slices(scores, SLICES)
    return gate.decide(metrics, scored, comparison, {}, config, version="3"), comparison


def verdict_of(decision, part):
    """Return the verdict about a slice."""
    (verdict,) = (verdict for verdict in decision.verdicts if verdict.slice == part)
    return verdict


def thresholds(**limits):
    return {
        "slices": {"thresholds": {name: {"exact_match": value} for name, value in limits.items()}}
    }


def test_a_threshold_of_a_slice_names_the_slice_and_its_rows():
    decision, _ = decide(thresholds(**{"domain=few": 0.9, "domain=news": 0.9}), wrong=[39])
    assert not decision.blessed
    assert decision.sentence == (
        "Failed: exact match 0.5000 in domain=few (2 rows) is below the threshold of 0.9000."
        " Rule: evaluation.slices.thresholds."
    )
    last = decision.verdicts[0]
    assert (last.slice, last.rows, last.metric) == ("domain=few", 2, "exact_match")
    assert (last.value, last.bound) == (0.5, 0.9)


def test_one_clause_names_several_baselines():
    bleu = Metric("bleu", "BLEU", 34.5, "", True, 100.0)
    metrics = {"bleu": MetricResult(**{**vars(bleu), "value": 0.5})}

    def sentence(**p_values):
        baselines = [
            BaselineResult(name=name, label=name, metrics=metrics, metric="bleu", p_value=p_value)
            for name, p_value in p_values.items()
        ]
        verdicts = [gate.check_better_than({"bleu": bleu}, baseline) for baseline in baselines]
        return gate.make_decision(verdicts).sentence

    assert sentence(copy=0.001, lead=0.001, chance=0.01) == (
        "Passed: BLEU 34.50 is significantly better than the baselines (copy: 0.50, p = 0.001; "
        "lead: 0.50, p = 0.001; chance: 0.50, p = 0.010)."
    )
    assert sentence(copy=0.001, lead=0.2, chance=0.4) == (
        "Failed: BLEU 34.50 is not significantly better than the baselines (lead: 0.50, p = 0.200; "
        "chance: 0.50, p = 0.400). Rule: evaluation.baselines."
    )
    assert "than the baseline (chance: 0.50, p = 0.400)." in sentence(copy=0.001, chance=0.4)


def test_a_baseline_without_a_common_metric_fails():
    config = {"metrics": ["perplexity"], "baselines": ["chance"]}
    candidate = {"perplexity": Metric("perplexity", "perplexity", 3.0, "", False, 1.0)}
    baseline = BaselineResult(name="chance", label="chance", metrics={})
    decision = gate.decide(
        {"candidate": candidate}, [], None, {}, section(config), baselines=[baseline]
    )
    assert decision.sentence == (
        "Failed: no metric compares the model with the baseline (chance)."
        " Rule: evaluation.baselines."
    )


def test_a_kind_selects_all_its_slices():
    decision, _ = decide(thresholds(domain=0.9), wrong=[0, 1, 39])
    assert [(verdict.slice, verdict.passed) for verdict in decision.verdicts] == [
        ("domain=news", True),
        ("domain=talk", True),
        ("domain=few", False),
    ]


def test_passed_slices_are_summarized():
    config = {**thresholds(domain=0.9, length=0.5), "thresholds": {"exact_match": 0.5}}
    decision, _ = decide(config)
    assert decision.sentence == (
        "Passed: exact match 1.0000 is above the threshold of 0.5000,"
        " and all checks pass in 4 slices."
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("domain=nwes", "rows in domain=nwes; available: domain=news, domain=talk, domain=few"),
        ("pattern=questions", "no rows in pattern=questions"),
    ],
)
def test_a_slice_without_rows_fails(name, reason):
    decision, _ = decide(thresholds(**{name: 0.1}))
    assert not decision.blessed
    assert decision.sentence.endswith(f"{reason}. Rule: evaluation.slices.thresholds.")
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


def scores_of(config, wrong):
    """Return the scores of a candidate with wrong rows, and of a perfect model in production."""
    sides = {"candidate": wrong, "production": ()}
    return {name: ModelScores(rows(side), config) for name, side in sides.items()}


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
        "Failed: exact match 0.4000 in domain=news (20 rows) is worse than version 3 (1.0000),"
        f" Holm’s p = {tests['news'].adjusted_p_value:.3f}. Rule: evaluation.production."
    )
    assert decide(production("domain=talk"), wrong=worse, production=better)[0].blessed
    assert decide(production(), wrong=worse, production=better)[0].blessed


def test_p_values_of_several_slices_are_adjusted():
    wrong = range(6)  # p is about 0.03
    alone, comparison = decide(production("domain=news"), wrong=wrong, production=[])
    assert 0.05 / 4 < comparison.slices[0].p_value < 0.05
    news = verdict_of(alone, "domain=news")
    assert not news.passed
    several, comparison = decide(production("domain", "length"), wrong=wrong, production=[])
    news = verdict_of(several, "domain=news")
    assert news.passed
    assert "not significantly worse" in news.reason


def test_without_a_test_every_loss_fails():
    decision, comparison = decide(production("domain", test=None), wrong=[39], production=[])
    assert [test.p_value for test in comparison.slices] == [None] * 3
    assert [verdict.slice for verdict in decision.verdicts if not verdict.passed] == [
        None,
        "domain=few",
    ]


def test_the_samples_grow_with_the_number_of_slices():
    """With 20 samples, 3 times the lowest p-value of 1/21 exceeds the level of 0.05."""
    config = {**production("domain"), "samples": 20}
    decision, _ = decide(config, wrong=range(20), production=[])
    news = verdict_of(decision, "domain=news")
    assert not news.passed


@pytest.mark.parametrize("missing", [[0], [0, 1], [0, 1, 2, 3]])
def test_slices_are_tested_by_randomization(missing):
    """The bootstrap would call the loss of a single row significant."""
    config = section(production("domain", test="bootstrap"))
    few = Slice("domain", "few", missing)
    comparison = compare(scores_of(config, missing), [few], config)
    (test,) = comparison.slices
    assert (comparison.test, test.test) == ("bootstrap", "randomization")
    assert test.adjusted_p_value > 0.05


def test_the_samples_are_reported_for_slices_and_all_rows():
    """21 slices need 420 samples where all rows need 200."""
    config = section(production("domain"))
    slices = [Slice("domain", str(row), [row]) for row in range(21)]
    comparison = compare(scores_of(config, [0]), slices, config)
    assert comparison.samples == 200
    assert {test.samples for test in comparison.slices} == {420}
    untested = section(production("domain", test=None))
    (test,) = compare(scores_of(config, [0]), slices[:1], untested).slices
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
        "Passed: BLEU 33.10 is above the threshold of 30.00 and not worse than version 3 (32.80)."
    )
    assert decision.verdicts[0].model_dump() == {
        "rule": "thresholds",
        "passed": True,
        "reason": "BLEU 33.10 is above the threshold of 30.00",
        "metric": "bleu",
        "value": 33.1,
        "bound": 30.0,
        "slice": None,
        "rows": None,
        "key": "evaluation.thresholds.bleu",
    }


@pytest.mark.parametrize(
    ("exact_match", "sentence"),
    [
        # Thresholds that were reached follow.
        (
            0.98,
            "Failed: BLEU 12.30 is below the threshold of 30.00. Rule: evaluation.thresholds.bleu."
            " Passed: exact match 0.9800 is above the threshold of 0.9700.",
        ),
        # Different metrics keep their subjects.
        (
            0.5,
            "Failed: BLEU 12.30 is below the threshold of 30.00,"
            " and exact match 0.5000 is below the threshold of 0.9700."
            " Rules: evaluation.thresholds.bleu, evaluation.thresholds.exact_match.",
        ),
    ],
)
def test_the_sentence_of_a_model_that_failed(exact_match, sentence):
    candidate = {"bleu": bleu(12.3), "exact_match": exact(exact_match)}
    verdicts = gate.check_thresholds(candidate, {"bleu": 30.0, "exact_match": 0.97})
    decision = gate.make_decision(verdicts)
    assert not decision.blessed
    assert decision.sentence == sentence
    assert len(decision.verdicts) == 2


NAN = float("nan")
WORSE = "worse than version 3 (32.80)"


@pytest.mark.parametrize(
    ("ours", "options", "passed", "reason"),
    [
        (33.1, {}, True, "not worse than version 3 (32.80)"),
        (33.1, {"p_value": 0.4}, True, "not worse than version 3 (32.80)"),
        (33.1, {"p_value": 0.05}, True, "not worse than version 3 (32.80)"),
        (34.1, {"p_value": 0.001}, True, "significantly better than version 3 (32.80), p = 0.001"),
        (32.8, {}, True, "not worse than version 3 (32.80)"),
        (32.5, {"tolerance": 0.5}, True, "within the tolerance of 0.5 of version 3 (32.80)"),
        (32.0, {"tolerance": 0.5}, False, f"{WORSE} by more than the tolerance of 0.5"),
        (32.7, {}, False, WORSE),
        (31.0, {"p_value": 0.21}, True, f"not significantly {WORSE}, p = 0.210"),
        (31.0, {"p_value": 0.05}, True, f"not significantly {WORSE}, p = 0.050"),
        (31.0, {"p_value": 0.001}, False, f"{WORSE}, p = 0.001"),
        (NAN, {}, False, WORSE),
        (NAN, {"p_value": 0.4}, False, f"{WORSE}, p = 0.400"),
    ],
)
def test_comparison_with_production(ours, options, passed, reason):
    verdict = not_worse(bleu(ours), bleu(32.8), **options)
    assert (verdict.passed, verdict.reason) == (passed, f"BLEU {ours:.2f} is {reason}")


def test_untestable_losses_pass_only_in_slices():
    part = Slice("domain", "few", range(3))
    verdict = not_worse(exact(NAN), exact(0.9), part=part, is_tested=True)
    assert verdict.passed
    assert verdict.reason == (
        "exact match nan in domain=few (3 rows) is not known to be worse than version 3 (0.9000):"
        " too few rows for a test"
    )
    assert not_worse(exact(0.1), exact(0.9), part=part, is_tested=True).passed
    assert not not_worse(exact(NAN), exact(0.9), part=part).passed
    assert not not_worse(exact(NAN), exact(0.9), is_tested=True).passed


def test_metrics_where_lower_is_better():
    (verdict,) = gate.check_thresholds({"ter": ter(55.0)}, {"ter": 50.0})
    assert not verdict.passed
    assert verdict.reason == "TER 55.00 is above the threshold of 50.00"
    assert gate.check_thresholds({"ter": ter(45.0)}, {"ter": 50.0})[0].passed
    assert not_worse(ter(51.0), ter(50.0), 1.0).passed
    assert not not_worse(ter(51.1), ter(50.0), 1.0).passed


def test_close_numbers_are_formatted_distinctly():
    (verdict,) = gate.check_thresholds({"bleu": bleu(29.96)}, {"bleu": 30.0})
    assert verdict.reason == "BLEU 29.96 is below the threshold of 30.00"
    (verdict,) = gate.check_thresholds({"bleu": bleu(30.0)}, {"bleu": 30.0})
    assert (verdict.passed, verdict.reason) == (True, "BLEU 30.00 equals the threshold of 30.00")


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
    verdict = not_worse(bleu(1.0), bleu(NAN))
    assert verdict.passed
    assert verdict.reason == "BLEU of version 3 is undefined, so there is no comparison"
    undefined = Metric("bleu", "BLEU", NAN, "nrefs:1|undefined:all outputs are empty")
    verdict = not_worse(bleu(1.0), undefined)
    assert verdict.passed
    assert verdict.reason == (
        "BLEU of version 3 is undefined (all outputs are empty), so there is no comparison"
    )
