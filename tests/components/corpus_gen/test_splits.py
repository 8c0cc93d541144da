from __future__ import annotations

from array import array

import pytest

from components.corpus_gen.sources import Group
from components.corpus_gen.splits import Draws, HashedSplit, canonical, hashed
from components.errors import UserError
from models.tasks.features import Feature
from tests.components.corpus_gen.corpora import TRANSLATION

SHARES = {"eval": 0.1, "test": 0.2}


def test_shares_are_kept_about():
    split = HashedSplit(SHARES, seed=3)
    drawn = [split([f"sentence {i}"]) for i in range(5000)]
    assert drawn.count("eval") / 5000 == pytest.approx(0.1, abs=0.02)
    assert drawn.count("test") / 5000 == pytest.approx(0.2, abs=0.02)


def test_the_draw_is_fixed_for_ever():
    # Written down once: a change would move sentences of users' test sets into training.
    split = HashedSplit({"eval": 0.3, "test": 0.3}, seed=0)
    texts = ("one", "two", "four", "five", "seven", "eight", "fünf", "六")
    drawn = [split([text]) for text in texts]
    assert drawn == ["test", "test", "eval", "train", "eval", "eval", "test", "eval"]


def test_another_seed_is_another_draw():
    texts = [f"sentence {i}" for i in range(200)]
    zero, one = (HashedSplit(SHARES, seed) for seed in (0, 1))
    assert [zero([t]) for t in texts] != [one([t]) for t in texts]


def test_spellings_of_the_same_source_stay_together():
    split = HashedSplit({"eval": 0.4, "test": 0.4})
    for i in range(50):
        assert split([f"caf\u00e9 {i}"]) == split([f"  cafe\u0301 {i}\t"])


def test_shares_that_leave_nothing_are_refused():
    with pytest.raises(UserError, match="nothing to train on"):
        HashedSplit({"eval": 0.5, "test": 0.5})


def test_only_splits_without_files_are_cut_from_train():
    section = {"features": TRANSLATION, "split": {"eval": 0.2, "test": 0.3, "seed": 5}}
    assert hashed(section, {"train", "eval", "test"}) is None
    assert hashed(section, {"train", "eval"}).names == ["train", "test"]
    assert hashed({"features": TRANSLATION}, {"train"}).names == ["train", "eval", "test"]


def test_a_share_of_nothing_makes_no_split():
    section = {"features": TRANSLATION, "split": {"eval": 0.1, "test": 0}}
    assert hashed(section, {"train"}).names == ["train", "eval"]


def test_the_column_that_decides_is_chosen_by_name():
    rows = [[f"source {i % 40}", f"target {i % 30}"] for i in range(1200)]
    for by, column in ((None, 0), ("source", 0), ("target", 1)):
        rule = {"eval": 0.2, "test": 0.2, "by": by}
        split = hashed({"features": TRANSLATION, "split": rule}, {"train"})
        places = {}
        for row in rows:
            for place, text in enumerate(row):
                places.setdefault((place, text), set()).add(split(row))
        scattered = {place for (place, _), names in places.items() if len(names) > 1}
        assert scattered == {1 - column}


def test_an_unknown_column_is_refused():
    with pytest.raises(UserError, match="unknown side 'english'\nChoose source or target"):
        hashed({"features": TRANSLATION, "split": {"by": "english"}}, {"train"})


def features(*given):
    return {"features": [Feature(*one).to_json() for one in given]}


SCORED = features(("score", "number", "reference"), ("one", "text"), ("other", "text", "extra"))


def test_the_first_input_decides_where_nothing_is_said():
    split = hashed({**SCORED, "split": {"eval": 0.4, "test": 0.4}}, {"train"})
    drawn = [{split([score, f"text {i}", "x"]) for score in (0.5, 1.0, 1.5)} for i in range(50)]
    assert all(len(names) == 1 for names in drawn)
    assert len(set.union(*drawn)) == 3


@pytest.mark.parametrize("by", ["score", "other"])
def test_a_number_and_an_extra_cannot_decide(by):
    with pytest.raises(UserError, match=rf"{by} cannot decide about a split\nChoose one\."):
        hashed({**SCORED, "split": {"by": by}}, {"train"})


def test_what_a_row_may_have_none_or_several_of_cannot_decide():
    captions = Feature("caption", "text", role="reference", several=True)
    title = Feature("title", "text", optional=True)
    row = [title.to_json(), Feature("image", "image").to_json(), captions.to_json()]
    for by in ("caption", "title"):
        with pytest.raises(UserError, match=r"cannot decide about a split\nChoose image\."):
            hashed({"features": row, "split": {"by": by}}, {"train"})
    # Nor does it by default: all rows without a title would be in one split.
    split = hashed({"features": row, "split": {"eval": 0.4, "test": 0.4}}, {"train"})
    assert len({split([None, f"{i}.jpg", ["x"]]) for i in range(50)}) == 3
    assert len({split([f"title {i}", "a.jpg", ["x"]]) for i in range(50)}) == 1


def test_points_decide_as_they_are_kept():
    split = hashed({**features(("points", "points")), "split": {"eval": 0.4}}, {"train", "test"})
    rows = [[[i / 7, 0.1]] for i in range(50)]
    assert len({split(row) for row in rows}) == 2
    kept = [[array("f", values).tolist()] for (values,) in rows]
    assert [split(row) for row in rows] == [split(row) for row in kept]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (" cafe\u0301", "caf\u00e9"),
        (["a ", "b"], "a\0b"),
        (0.5, "0.5"),
        ([3, 0], "3 0"),
        ([0.5, 1.0], "0.5 1.0"),
    ],
)
def test_values_have_one_form(value, text):
    assert canonical(value) == text


@pytest.mark.parametrize("test", [0.0, 0.1])
def test_of_the_newest_span_more_is_tested_on_and_the_rest_stays_where_it_was(test):
    old, new, own = (
        Group("train", "tsv", ("1.tsv",), span="1"),
        Group("train", "tsv", ("2.tsv",), span="2", test_share=0.2),
        Group("test", "tsv", ("t.tsv",), span="fixed"),
    )
    section = {"features": TRANSLATION, "split": {"eval": 0.1, "test": test}}
    draws = Draws(section, {"train": [old, new]})
    assert draws.names == {"train", "eval", "test"}
    rows = [[f"sentence {i}", ""] for i in range(5000)]
    usual, newest = (list(map(draws.of(group), rows)) for group in (old, new))
    moved = [(one, other) for one, other in zip(usual, newest, strict=True) if one != other]
    assert set(moved) == {("train", "test")}
    assert len(moved) / 5000 == pytest.approx(0.2, abs=0.02)
    assert draws.of(own) is None


def test_a_frozen_test_set_gets_rows_of_the_newest_span_beside():
    old = Group("train", "tsv", ("1.tsv",), span="1")
    new = Group("train", "tsv", ("2.tsv",), span="2", test_share=0.2)
    draws = Draws({"features": TRANSLATION}, {"train": [old, new], "eval": [], "test": []})
    assert draws.of(old) is None
    assert draws.usual is None
    assert draws.of(new).names == ["train", "test"]
