from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate

import pytest

from components.drift import divergence, drift, uncompared
from components.profiles import BOUNDS, histogram


def profile(texts, listed=None):
    """A profile of the one feature ``source``."""
    counts = Counter(word for text in texts for word in text.split())
    kept = dict(counts.most_common(listed))
    source = {
        "total": counts.total(),
        "distinct": len(counts),
        "once": list(counts.values()).count(1),
        "words": kept,
        "complete": len(kept) == len(counts),
        "lengths": {
            "unit": "character",
            "bounds": list(BOUNDS),
            "counts": histogram(Counter(map(len, texts))),
        },
    }
    return {"rows": len(texts), "features": {"source": source}}


def zipf(rows, seed, shift=0):
    """Texts of words as frequent as those of a language."""
    draw = random.Random(seed)
    vocabulary = [f"w{i + shift}" for i in range(5000)]
    sums = list(accumulate(1 / (i + 3) for i in range(5000)))
    return [
        " ".join(draw.choices(vocabulary, cum_weights=sums, k=draw.randint(5, 15)))
        for _ in range(rows)
    ]


def values(before, after):
    return {name: found["source"]["value"] for name, found in drift(before, after).items()}


LIMITS = {"drift_words": 0.03, "drift_oov": 0.02, "drift_lengths": 0.05}  # the defaults


def test_the_same_data_has_no_drift():
    one = profile(["a b", "c"])
    assert values(one, one) == pytest.approx(
        {"drift_words": 0, "drift_oov": 0, "drift_lengths": 0}, abs=1e-9
    )


@pytest.mark.parametrize("rows", [(5000, 5000), (5000, 300), (300, 5000), (300, 300)])
def test_more_of_the_same_text_stays_far_below_the_limits(rows):
    found = values(profile(zipf(rows[0], 1)), profile(zipf(rows[1], 2)))
    assert found["drift_words"] < 0.02
    assert found["drift_oov"] < 0.015
    assert found["drift_lengths"] < 0.02


@pytest.mark.parametrize("rows", [(100, 100), (60, 1000), (1000, 60)])
def test_small_parts_of_one_text_are_hardly_ever_over_a_limit(rows):
    text = zipf(40 * sum(rows), 1)
    parts = [text[start : start + sum(rows)] for start in range(0, len(text), sum(rows))]
    over = Counter(
        name
        for part in parts
        for name, value in values(profile(part[: rows[0]]), profile(part[rows[0] :])).items()
        if value > LIMITS[name]
    )
    assert max(over.values(), default=0) <= 2  # of 40


def test_other_words_are_seen():
    found = drift(profile(zipf(2000, 1)), profile(zipf(2000, 2, shift=30)))
    assert found["drift_words"]["source"]["value"] > 0.1
    assert found["drift_words"]["source"]["examples"][0]["word"] in ("w0", "w30")


def test_words_that_were_not_there_are_counted():
    before = profile(["a b c"] * 10)
    found = drift(before, profile(["a b x", "a y x", "a b c"]))["drift_oov"]["source"]
    assert found["rate"] == pytest.approx(3 / 9)
    assert found["expected"] == 0
    assert found["examples"] == [{"word": "x", "count": 2}, {"word": "y", "count": 1}]


def test_words_that_occur_once_foretell_new_ones():
    found = drift(profile(["a a b c"]), profile(["a x a a"]))["drift_oov"]["source"]
    assert (found["rate"], found["expected"], found["value"]) == (0.25, 0.5, 0)


@pytest.mark.parametrize(("rows", "listed"), [(3000, 1000), (300, 5000)])
def test_words_that_found_no_place_in_a_list_are_no_drift(rows, listed):
    before = profile(zipf(3000, 1), listed=1000)
    after = profile(zipf(rows, 2), listed)
    found = drift(before, after)["drift_oov"]["source"]
    assert found["value"] < 0.03
    other = profile(zipf(rows // 2, 2) + zipf(rows // 2, 3, shift=9000), listed)
    assert drift(before, other)["drift_oov"]["source"]["value"] > 0.2


@pytest.mark.parametrize("listed", [(None, None), (1000, None), (1000, 1000)])
def test_everything_replaced_is_seen_whichever_list_is_cut(listed):
    before = profile(zipf(3000, 1), listed[0])
    replaced = profile(zipf(3000, 2, shift=5000), listed[1])
    found = drift(before, replaced)["drift_oov"]["source"]
    assert found["rate"] == 1
    assert found["value"] > 0.7


@pytest.mark.parametrize("rows", [(3000, 3000), (3000, 600), (600, 3000)])
def test_two_cut_lists_are_compared_by_their_frequent_words(rows):
    before = profile(zipf(rows[0], 1), listed=1000)
    same, other, replaced = (
        values(before, profile(zipf(rows[1], 2, shift), listed=1000))["drift_oov"]
        for shift in (0, -60, 5000)
    )
    assert same < 0.01
    assert other > 0.5
    assert replaced == pytest.approx(1, abs=0.1)


def test_two_cut_lists_of_rare_words_tell_nothing():
    one, other = (profile([f"{name}{i}" for i in range(30)], listed=20) for name in "ab")
    assert values(one, other)["drift_oov"] == 0


def test_a_text_whose_words_are_all_gone_is_wholly_different():
    words, none = profile(["a b a"]), profile(["!!! ???"])
    none["features"]["source"] |= {"total": 0, "distinct": 0, "once": 0, "words": {}}
    found = drift(words, none)
    assert found["drift_words"]["source"]["value"] == 1
    first = found["drift_words"]["source"]["examples"][0]
    assert first == {"word": "a", "before": pytest.approx(2 / 3), "after": 0}
    assert found["drift_oov"] == {}  # there is no word that could be new
    back = drift(none, words)
    assert back["drift_words"]["source"]["value"] == back["drift_oov"]["source"]["value"] == 1
    assert back["drift_oov"]["source"]["examples"][0] == {"word": "a", "count": 2}
    assert drift(none, none)["drift_words"] == {}


def test_what_could_not_be_compared_is_named():
    one, other = profile(["a"]), profile(["a"])
    other["features"]["target"] = other["features"]["source"]
    other["features"]["points"] = {"lengths": other["features"]["source"]["lengths"]}
    assert uncompared(drift(one, other), other) == {
        "drift_words": ["target"],
        "drift_oov": ["target"],
        "drift_lengths": ["points", "target"],
    }
    assert set(map(tuple, uncompared(drift(one, one), one).values())) == {()}


def test_other_lengths_are_seen():
    found = values(profile(["a a"] * 20), profile(["a a " * 20] * 20))
    assert found["drift_lengths"] == pytest.approx(1)
    assert found["drift_words"] == pytest.approx(0, abs=1e-9)


def test_features_and_bounds_that_differ_are_not_compared():
    one, other = profile(["a"]), profile(["a"])
    other["features"]["target"] = other["features"]["source"]
    other["features"]["source"]["lengths"]["bounds"] = [1]
    found = drift(one, other)
    assert list(found["drift_words"]) == ["source"]
    assert found["drift_lengths"] == {}


def test_points_have_lengths_alone():
    lengths = {"unit": "point", "bounds": [5], "counts": [3, 1]}
    one = {"rows": 4, "features": {"points": {"lengths": lengths}}}
    found = drift(one, one)
    assert found["drift_words"] == found["drift_oov"] == {}
    assert found["drift_lengths"]["points"]["value"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ([1, 0], [0, 1], 1),
        ([1, 1], [2, 2], 0),
        ([1, 0], [1, 1], 0.3113),
        ([0], [0], 0),
        ([0], [1], 1),
    ],
)
def test_divergence(one, other, value):
    assert divergence(one, other) == pytest.approx(value, abs=1e-4)
