import random
from array import array
from collections import Counter
from dataclasses import replace

import pytest

from regard.components.data.group_jobs import GroupJob
from regard.components.data.sources import FileGroup
from regard.components.data.split_assignment import (
    HashedSplit,
    hashed_splits,
    replay_bin,
    replay_threshold,
)
from regard.core.features import Feature
from regard.core.kinds import POINTS, TEXT
from tests.components.corpora import CAPTIONED, SCORED, TRANSLATION, corpus_of

SPLIT_SHARES = {"eval": 0.1, "test": 0.2}


def test_shares():
    split = HashedSplit(SPLIT_SHARES, seed=3)
    names = [split([f"sentence {i}"]) for i in range(5000)]
    assert names.count("eval") / 5000 == pytest.approx(0.1, abs=0.02)
    assert names.count("test") / 5000 == pytest.approx(0.2, abs=0.02)


def test_assignment_never_changes():
    # A change would move sentences of users' test splits to training.
    split = HashedSplit({"eval": 0.3, "test": 0.3}, seed=0)
    texts = ("one", "two", "four", "five", "seven", "eight", "fünf", "六")
    names = [split([text]) for text in texts]
    assert names == ["test", "test", "eval", "train", "eval", "eval", "test", "eval"]


def test_spellings_of_the_same_source():
    split = HashedSplit({"eval": 0.4, "test": 0.4})
    for i in range(50):
        one, other = [f"caf\u00e9 {i}"], [f"  cafe\u0301 {i}\t"]
        assert split(one) == split(other)
        assert replay_bin(one) == replay_bin(other)


def default_split(features=TRANSLATION, **split):
    corpus = corpus_of("/data", features, train="a.tsv", split=split)
    return hashed_splits(corpus)[0]


def test_separate_files_need_no_assignment():
    assert default_split(eval=0.2, test=0.3).names == ("train", "eval", "test")
    corpus = corpus_of("/data", train="a.tsv", eval="e.tsv", test="t.tsv")
    assert hashed_splits(corpus) == (None, None)


def test_deciding_feature():
    rows = [[f"source {i % 40}", f"target {i % 30}"] for i in range(1200)]
    for by, column in ((None, 0), ("source", 0), ("target", 1)):
        split = default_split(eval=0.2, test=0.2, by=by)
        splits = {}
        for row in rows:
            for index, text in enumerate(row):
                splits.setdefault((index, text), set()).add(split(row))
        divided = {index for (index, _), names in splits.items() if len(names) > 1}
        assert divided == {1 - column}


def test_first_required_input_decides_by_default():
    split = default_split(SCORED, eval=0.4, test=0.4)
    names = [{split([score, f"text {i}", "x"]) for score in (0.5, 1.0, 1.5)} for i in range(50)]
    assert all(len(of_text) == 1 for of_text in names)
    assert len(set.union(*names)) == 3
    # Otherwise all rows without a title would be in one split.
    split = default_split((Feature("title", TEXT, optional=True), *CAPTIONED), eval=0.4, test=0.4)
    assert len({split([None, f"{i}.jpg", ["x"]]) for i in range(50)}) == 3
    assert len({split([f"title {i}", "a.jpg", ["x"]]) for i in range(50)}) == 1


def test_points_are_compared_in_float32():
    split = default_split((Feature("points", POINTS),), eval=0.4, test=0.1)
    rows = [[[i / 7, 0.1]] for i in range(50)]
    assert len({split(row) for row in rows}) == 3
    stored = [[array("f", values).tolist()] for (values,) in rows]
    assert [split(row) for row in rows] == [split(row) for row in stored]


def test_newest_span_gives_more_test_rows():
    section = {"train": "{SPAN}.tsv", "spans": {"test_share": 0.2}}
    splits = hashed_splits(corpus_of("/data", split={"eval": 0.1, "test": 0.1}, **section))
    rows = [[f"sentence {i}", ""] for i in range(5000)]
    default, newest = (list(map(split, rows)) for split in splits)
    differences = [(one, other) for one, other in zip(default, newest, strict=True) if one != other]
    assert set(differences) == {("train", "test")}
    assert len(differences) / 5000 == pytest.approx(0.2, abs=0.02)
    # Next to a fixed test split only the newest span gives further rows.
    default, newest = hashed_splits(corpus_of("/data", eval="e.tsv", test="t.tsv", **section))
    assert default is None
    assert newest.names == ("train", "test")


def test_replay_threshold_is_nearest_to_the_share():
    counts = {10: 5, 20: 5, 30: 100, 40: 5}
    assert replay_threshold(counts, 40, 0.2) == 21  # 10 rows
    assert replay_threshold(counts, 28, 0.2) == 11  # 7 rows
    assert replay_threshold(counts, 400, 0.2) == 31
    assert replay_threshold(counts, 4000, 0.2) == 2**16
    assert replay_threshold(counts, 0, 0.2) == 0
    assert replay_threshold({}, 10, 0.2) == 2**16


@pytest.mark.parametrize("share", [0.1, 0.23, 0.4])
def test_copies_are_replayed_together_and_the_share_is_met(share):
    draw = random.Random(7)
    copies = {f"sentence {i}": draw.choice((1, 1, 1, 2, 5, 20)) for i in range(1500)}
    rows = [(0, [text, "x"]) for text, count in copies.items() for _ in range(count)]
    draw.shuffle(rows)
    split = HashedSplit({"eval": 0.3})
    job = GroupJob(0, FileGroup("train", "tsv", ("1.tsv",), span="1", replay=share), split)
    counts = job.count_replayable(rows)
    trained = {text for text in copies if split([text]) == "train"}
    assert sum(counts.values()) == sum(copies[text] for text in trained)
    job = replace(job, threshold=replay_threshold(counts, 2000, share))
    replayed = Counter(values[0] for _, values in rows if job.assign(values))
    assert replayed.keys() < trained
    assert replayed == {text: copies[text] for text in replayed}  # all copies or none
    # The threshold cuts between groups of copies: at most half of the largest one is missing.
    assert replayed.total() == pytest.approx(2000 * share / (1 - share), abs=20 / 2 + 0.5)


def test_every_row_has_the_same_chance_to_be_replayed():
    bins = [replay_bin([f"sentence {i}", "x"]) for i in range(5000)]
    sums = [sum(number < quarter * 2**14 for number in bins) for quarter in range(1, 5)]
    assert sums == pytest.approx([1250, 2500, 3750, 5000], abs=120)


def test_seed():
    texts = [f"sentence {i}" for i in range(200)]
    zero, one = (HashedSplit(SPLIT_SHARES, seed) for seed in (0, 1))
    assert [zero([t]) for t in texts] != [one([t]) for t in texts]
