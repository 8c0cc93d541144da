"""Profiles of training splits, and the drift between two."""

import functools
import json
import random
from collections import Counter
from itertools import accumulate

import pytest

from regard.components.data.profiles import (
    BOUNDS,
    divergence,
    histogram,
    measure_drift,
    missing_features,
    read_profile,
)
from regard.core.errors import UserError

LENGTHS = {"unit": "character", "bounds": [5], "counts": [1, 0]}
WORDS = {"total": 1, "distinct": 1, "once": 1, "words": {"a": 1}, "complete": True}


def test_histogram():
    counts = histogram({0: 1, 5: 2, 6: 4, 7: 8, 5000: 16, 5001: 32})
    assert counts[:3] == [3, 4, 8]
    assert counts[-2:] == [16, 32]
    assert len(counts) == len(BOUNDS) + 1
    assert (BOUNDS[0], BOUNDS[-1]) == (5, 5000)
    assert sorted({*BOUNDS}) == list(BOUNDS)


def stored(entry):
    return json.dumps({"rows": 1, "features": {"source": entry}})


@pytest.mark.parametrize("entry", [{"lengths": LENGTHS}, {**WORDS, "lengths": LENGTHS}])
def test_read_profile(tmp_path, entry):
    (tmp_path / "profile.json").write_text(stored(entry))
    assert read_profile(tmp_path / "profile.json", "")["features"] == {"source": entry}


NO_LIST = {**WORDS, "words": ["a"], "lengths": LENGTHS}
PARTIAL = {"total": 1, "lengths": LENGTHS}
CONTENTS = ["{", "[]", *map(stored, ([], WORDS, NO_LIST, PARTIAL, {"lengths": {"bounds": [5]}}))]


@pytest.mark.parametrize("content", CONTENTS)
def test_file_is_not_a_profile(tmp_path, content):
    path = tmp_path / "profile.json"
    path.write_text(content)
    with pytest.raises(UserError, match="profile cannot be read") as caught:
        read_profile(path, "Remove it.")
    assert (caught.value.where, caught.value.remedy) == (str(path), "Remove it.")


def profile(texts, listed=None):
    """A profile of the one feature ``source``."""
    counts = Counter(word for text in texts for word in text.split())
    frequent = dict(counts.most_common(listed))
    source = {
        "total": counts.total(),
        "distinct": len(counts),
        "once": list(counts.values()).count(1),
        "words": frequent,
        "complete": len(frequent) == len(counts),
        "lengths": {
            "unit": "character",
            "bounds": list(BOUNDS),
            "counts": histogram(Counter(map(len, texts))),
        },
    }
    return {"rows": len(texts), "features": {"source": source}}


@functools.cache
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
    return {name: by["source"]["value"] for name, by in measure_drift(before, after).items()}


LIMITS = {"drift_words": 0.03, "drift_oov": 0.02, "drift_lengths": 0.05}  # the defaults


def test_same_data_has_no_drift():
    one = profile(["a b", "c"])
    assert values(one, one) == pytest.approx(
        {"drift_words": 0, "drift_oov": 0, "drift_lengths": 0}, abs=1e-9
    )


@pytest.mark.parametrize("rows", [(5000, 5000), (5000, 300), (300, 5000), (300, 300)])
def test_more_text_of_the_same_kind_is_far_below_the_limits(rows):
    drift = values(profile(zipf(rows[0], 1)), profile(zipf(rows[1], 2)))
    assert drift["drift_words"] < 0.02
    assert drift["drift_oov"] < 0.015
    assert drift["drift_lengths"] < 0.02


@pytest.mark.parametrize("rows", [(100, 100), (60, 1000), (1000, 60)])
def test_small_parts_of_a_text_rarely_exceed_a_limit(rows):
    text = zipf(40 * sum(rows), 1)
    parts = [text[start : start + sum(rows)] for start in range(0, len(text), sum(rows))]
    exceeded = Counter(
        name
        for part in parts
        for name, value in values(profile(part[: rows[0]]), profile(part[rows[0] :])).items()
        if value > LIMITS[name]
    )
    assert max(exceeded.values(), default=0) <= 2  # of 40


def test_new_words_are_counted():
    before = profile(["a b c"] * 10)
    drift = measure_drift(before, profile(["a b x", "a y x", "a b c"]))["drift_oov"]["source"]
    assert drift["rate"] == pytest.approx(3 / 9)
    assert drift["expected"] == 0
    assert drift["examples"] == [{"word": "x", "count": 2}, {"word": "y", "count": 1}]


@pytest.mark.parametrize(("rows", "listed"), [(3000, 1000), (300, 5000)])
def test_words_beyond_a_cut_list_are_no_drift(rows, listed):
    before = profile(zipf(3000, 1), listed=1000)
    after = profile(zipf(rows, 2), listed)
    drift = measure_drift(before, after)["drift_oov"]["source"]
    assert drift["value"] < 0.03
    other = profile(zipf(rows // 2, 2) + zipf(rows // 2, 3, shift=9000), listed)
    assert measure_drift(before, other)["drift_oov"]["source"]["value"] > 0.2


@pytest.mark.parametrize("listed", [(None, None), (1000, None), (1000, 1000)])
def test_replaced_words_with_cut_lists(listed):
    before = profile(zipf(3000, 1), listed[0])
    replaced = profile(zipf(3000, 2, shift=5000), listed[1])
    drift = measure_drift(before, replaced)["drift_oov"]["source"]
    assert drift["rate"] == 1
    assert drift["value"] > 0.7


@pytest.mark.parametrize("rows", [(3000, 3000), (3000, 600), (600, 3000)])
def test_two_cut_lists_are_compared_by_frequent_words(rows):
    before = profile(zipf(rows[0], 1), listed=1000)
    same, other, replaced = (
        values(before, profile(zipf(rows[1], 2, shift), listed=1000))["drift_oov"]
        for shift in (0, -60, 5000)
    )
    assert same < 0.01
    assert other > 0.5
    assert replaced == pytest.approx(1, abs=0.1)


def test_text_without_words():
    words, none = profile(["a b a"]), profile(["!!! ???"])
    none["features"]["source"] |= {"total": 0, "distinct": 0, "once": 0, "words": {}}
    drift = measure_drift(words, none)
    assert drift["drift_words"]["source"]["value"] == 1
    first = drift["drift_words"]["source"]["examples"][0]
    assert first == {"word": "a", "before": pytest.approx(2 / 3), "after": 0}
    assert drift["drift_oov"] == {}
    reverse = measure_drift(none, words)
    assert reverse["drift_words"]["source"]["value"] == reverse["drift_oov"]["source"]["value"] == 1
    assert reverse["drift_oov"]["source"]["examples"][0] == {"word": "a", "count": 2}
    assert measure_drift(none, none)["drift_words"] == {}


def test_missing_features():
    one, other = profile(["a"]), profile(["a"])
    other["features"]["target"] = other["features"]["source"]
    other["features"]["points"] = {"lengths": other["features"]["source"]["lengths"]}
    assert missing_features(measure_drift(one, other), other) == {
        "drift_words": ["target"],
        "drift_oov": ["target"],
        "drift_lengths": ["points", "target"],
    }
    assert set(map(tuple, missing_features(measure_drift(one, one), one).values())) == {()}


def test_other_lengths():
    """Points have lengths, but no words."""
    short, long = (
        {"rows": 4, "features": {"points": {"lengths": {**LENGTHS, "counts": counts}}}}
        for counts in ([40, 0], [0, 40])
    )
    drift = {"drift_words": {}, "drift_oov": {}, "drift_lengths": {"points": {"value": 1}}}
    assert measure_drift(short, long) == drift


def test_different_features_and_bounds_are_not_compared():
    one, other = profile(["a"]), profile(["a"])
    other["features"]["target"] = other["features"]["source"]
    other["features"]["source"]["lengths"]["bounds"] = [1]
    drift = measure_drift(one, other)
    assert list(drift["drift_words"]) == ["source"]
    assert drift["drift_lengths"] == {}


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


def test_words_that_occur_once_predict_new_words():
    drift = measure_drift(profile(["a a b c"]), profile(["a x a a"]))["drift_oov"]["source"]
    assert (drift["rate"], drift["expected"], drift["value"]) == (0.25, 0.5, 0)
