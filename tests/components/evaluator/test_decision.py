from __future__ import annotations

import pytest

from components.evaluator.decision import compared, decide
from components.evaluator.scoring import Scores, comparison, in_parts
from components.evaluator.slices import Slice
from models.metrics import Rows

# Of 40 rows the first 20 are news; the last two are a slice of their own.
NEWS, TALK, FEW = (
    Slice("domain", name, list(rows))
    for name, rows in (("news", range(20)), ("talk", range(20, 38)), ("few", range(38, 40)))
)
LONG = Slice("length", "31+", list(range(10, 40)))
SLICES = [NEWS, TALK, FEW, LONG]
CONFIG = {"metrics": ["exact_match"], "samples": 200}
SUMMARY = {"production_version": "3"}


def rows(wrong):
    """40 answers, of which some are wrong."""
    answers = ["no" if at in wrong else "yes" for at in range(40)]
    return Rows(answers, [["yes"]] * 40)


def decided(config, wrong=(), production=None):
    config = {**CONFIG, **config}
    return judged(rows(wrong), None if production is None else rows(production), config)


def judged(candidate, production, config):
    """The decision about the answers of two models, and the comparison."""
    sides = {"candidate": candidate}
    if production is not None:
        sides["production"] = production
    scores = {name: Scores(config["metrics"], side, config) for name, side in sides.items()}
    against = None
    if production is not None:
        against = comparison(
            scores["candidate"], scores["production"], config, compared(SLICES, config)
        )
    metrics = {name: found.metrics for name, found in scores.items()}
    parts = in_parts(scores, SLICES)
    return decide(SUMMARY, metrics, parts, against, {}, config), against


def floors(**limits):
    return {"slices": {"floors": {name: {"exact_match": value} for name, value in limits.items()}}}


def test_a_floor_of_a_slice_names_it_and_its_rows():
    decision, _ = decided(floors(**{"domain=few": 0.9, "domain=news": 0.9}), wrong=[39])
    assert not decision.blessed
    assert decision.sentence == (
        "Not blessed: exact match 0.500 in domain=few (2 rows) is under the floor of 0.900."
    )
    last = decision.reasons[0]
    assert (last.slice, last.rows, last.metric) == ("domain=few", 2, "exact_match")
    assert (last.value, last.bound) == (0.5, 0.9)


def test_a_kind_means_all_its_slices():
    decision, _ = decided(floors(domain=0.9), wrong=[0, 1, 39])
    assert [(one.slice, one.passed) for one in decision.reasons] == [
        ("domain=news", True),
        ("domain=talk", True),
        ("domain=few", False),
    ]


def test_what_is_well_in_slices_is_told_in_short():
    config = {**floors(domain=0.9, length=0.5), "floors": {"exact_match": 0.5}}
    decision, _ = decided(config)
    assert decision.sentence == (
        "Blessed: exact match 1.000 is over the floor of 0.500,"
        " and nothing is against it in 4 slices."
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("domain=nwes", "row of domain=nwes; there is domain=news, domain=talk, domain=few."),
        ("pattern=questions", "no row of pattern=questions."),
    ],
)
def test_a_slice_without_rows_keeps_the_model_back(name, told):
    decision, _ = decided(floors(**{name: 0.1}))
    assert not decision.blessed
    assert decision.sentence.endswith(told)
    production = {"metric": "exact_match", "slices": [name]}
    decision, _ = decided({"production": production}, production=[])
    assert not decision.blessed
    # Where there is no model to compare with nothing is asked of it.
    assert decided({"production": production})[0].blessed


def production(*slices, **more):
    return {
        "production": {
            "metric": "exact_match",
            "test": "randomization",
            "slices": list(slices),
            **more,
        }
    }


def test_a_loss_in_a_slice_is_no_loss_of_all_rows():
    """News is much worse, talk as much better: all rows together are as good."""
    config, worse, better = production("domain"), range(12), range(20, 32)
    decision, against = decided(config, wrong=worse, production=better)
    assert not decision.blessed
    assert against["p_value"] == 1.0
    tests = {test["name"]: test for test in against["slices"]}
    assert tests["news"]["rows"] == 20
    assert tests["news"]["adjusted"] == pytest.approx(3 * tests["news"]["p_value"])
    assert decision.sentence == (
        "Not blessed: exact match 0.400 in domain=news (20 rows) is worse than version 3 (1.000),"
        f" Holm’s p = {tests['news']['adjusted']:.3f}."
    )
    assert decided(production("domain=talk"), wrong=worse, production=better)[0].blessed
    assert decided(production(), wrong=worse, production=better)[0].blessed


def test_a_loss_that_is_significant_alone_need_not_be_so_among_several():
    wrong = range(6)  # p is about 0.03
    alone, against = decided(production("domain=news"), wrong=wrong, production=[])
    assert 0.05 / 4 < against["slices"][0]["p_value"] < 0.05
    news = next(one for one in alone.reasons if one.slice == "domain=news")
    assert not news.passed
    among, against = decided(production("domain", "length"), wrong=wrong, production=[])
    news = next(one for one in among.reasons if one.slice == "domain=news")
    assert news.passed
    assert "not significantly worse" in news.reason


def test_without_a_test_every_loss_counts():
    decision, against = decided(production("domain", test=None), wrong=[39], production=[])
    assert [test["p_value"] for test in against["slices"]] == [None] * 3
    assert [one.slice for one in decision.reasons if not one.passed] == [None, "domain=few"]


def test_samples_suffice_for_as_many_slices_as_there_are():
    """With 20 samples no p-value is below 1/21, which times 3 no level of 0.05 is above."""
    config = {**production("domain"), "samples": 20}
    decision, _ = decided(config, wrong=range(20), production=[])
    news = next(one for one in decision.reasons if one.slice == "domain=news")
    assert not news.passed


@pytest.mark.parametrize("lost", [[0], [0, 1], [0, 1, 2, 3]])
def test_a_slice_of_few_rows_is_no_proof_whatever_the_test_of_all(lost):
    """By the bootstrap a row lost of one is a difference without any doubt."""
    config = {**CONFIG, **production(test="bootstrap")}
    candidate = Scores(["exact_match"], rows(lost), config)
    other = Scores(["exact_match"], rows(()), config)
    few = Slice("domain", "few", lost)
    against = comparison(candidate, other, config, [few])
    (test,) = against["slices"]
    assert (against["test"], test["test"]) == ("bootstrap", "randomization")
    assert test["adjusted"] > 0.05


def test_samples_are_told_of_slices_and_of_all_rows():
    """21 slices need 420 samples where all rows need 200."""
    config = {**CONFIG, **production()}
    sides = [Scores(["exact_match"], rows(wrong), config) for wrong in ([0], [])]
    slices = [Slice("domain", str(at), [at]) for at in range(21)]
    against = comparison(*sides, config, slices)
    assert against["samples"] == 200
    assert {test["samples"] for test in against["slices"]} == {420}
    (untested,) = comparison(*sides, {**CONFIG, **production(test=None)}, slices[:1])["slices"]
    assert (untested["test"], untested["samples"]) == (None, 0)


def test_what_is_undefined_in_a_slice_of_few_rows_is_no_loss_unless_every_loss_counts():
    """The candidate answers three rows alike, and so has no correlation there."""
    rights = [[float(at)] for at in range(40)]
    theirs = [float(at) for at in range(40)]
    ours = [*theirs[:38], 38.0, 38.0]
    config = {"metrics": ["pearson"], "samples": 200}
    for test, blessed in (("randomization", True), ("bootstrap", True), (None, False)):
        against = {"metric": "pearson", "test": test, "slices": ["domain"], "tolerance": 0.1}
        sides = Rows(ours, rights), Rows(theirs, rights)
        decision, _ = judged(*sides, {**config, "production": against})
        assert decision.blessed is blessed, decision.sentence
