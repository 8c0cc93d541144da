from __future__ import annotations

import pytest

from components.corpus_gen.splits import HashedSplit, hashed
from components.errors import UserError

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
    section = {"split": {"eval": 0.2, "test": 0.3, "seed": 5}}
    assert hashed(section, {"train", "eval", "test"}) is None
    assert hashed(section, {"train", "eval"}).names == ["train", "test"]
    assert hashed({}, {"train"}).names == ["train", "eval", "test"]


def test_a_share_of_nothing_makes_no_split():
    assert hashed({"split": {"eval": 0.1, "test": 0}}, {"train"}).names == ["train", "eval"]


def test_the_column_that_decides_is_chosen_by_name():
    rows = [[f"source {i % 40}", f"target {i % 30}"] for i in range(1200)]
    for by, column in ((None, 0), ("source", 0), ("target", 1)):
        split = hashed({"split": {"eval": 0.2, "test": 0.2, "by": by}}, {"train"})
        places = {}
        for row in rows:
            for place, text in enumerate(row):
                places.setdefault((place, text), set()).add(split(row))
        scattered = {place for (place, _), names in places.items() if len(names) > 1}
        assert scattered == {1 - column}


def test_an_unknown_column_is_refused():
    with pytest.raises(UserError, match="unknown side 'english'\nChoose source or target"):
        hashed({"split": {"by": "english"}}, {"train"})
