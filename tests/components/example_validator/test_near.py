from __future__ import annotations

import random

import pytest

from components.example_validator import near
from components.example_validator.near import (
    MEASURED,
    Neighbours,
    _jaccard,
    _shingles,
    joined,
    similarity,
    tallied,
    text_of,
)
from components.example_validator.tally import reference


def looked_up(train, others, least=0.8, batch=1000):
    neighbours = Neighbours(
        [(reference(1, i), text) for i, text in enumerate(others)], least, batch
    )
    for i, text in enumerate(train):
        neighbours.add(reference(0, i), text)
    return neighbours.found()


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ("abcde", "abcdf", 1 / 3),
        ("A  dog\tsleeps", "a dog sleeps", 1),
        ("ab", "ab", 1),
        ("ab", "cd", 0),
        ("aaaa", "aaaaaaaa", 1),
        ("他有一个兄弟和两个姐妹。", "我有一个兄弟和两个姐妹。", 8 / 10),
    ],
)
def test_similarity(one, other, value):
    assert similarity(one, other) == pytest.approx(value)


def test_nearly_the_same_is_found_and_the_nearest_counts():
    train = [
        "nothing like it",
        "A blond girl sleeps on the couch.",
        "A blond girl sleeps on a couch",
    ]
    hits = looked_up(train, ["Something else.", "A blond girl sleeps on a couch."])
    assert hits == {reference(1, 1): (pytest.approx(27 / 28), 2)}
    tally = tallied(hits)
    assert tally.counts == {"near_overlap": {1: 1}}
    assert tally.examples["near_overlap"] == [(reference(1, 1), 2)]


def test_an_exact_copy_is_left_to_the_other_check():
    text = "A blond girl sleeps on a couch."
    hits = [looked_up([text], [text]), looked_up([text + "!"], [text])]
    assert tallied(joined(hits)).counts == tallied(joined(reversed(hits))).counts == {}
    assert tallied(hits[1]).counts == {"near_overlap": {1: 1}}


def test_of_equals_the_first_of_the_corpus_is_shown():
    one = {5: (0.9, 8)}
    other = {5: (0.9, 3), 6: (0.8, 1)}
    assert joined([one, other]) == joined([other, one]) == {5: (0.9, 3), 6: (0.8, 1)}


@pytest.mark.parametrize("least", [0.5, 0.7, 0.8, 0.9, 1.0])
def test_it_finds_what_a_comparison_of_all_pairs_finds(least):
    draw = random.Random(1)
    words = ["dog", "cat", "runs", "sleeps", "over", "under", "the", "green", "table", "quickly"]
    others = [" ".join(draw.choices(words, k=9)) for _ in range(250)]
    train = []
    for text in others * 2:
        parts = text.split()
        for _ in range(draw.randrange(4)):
            parts[draw.randrange(9)] = draw.choice(words)
        train.append(" ".join(parts).capitalize())
    shingles = [{*_shingles(text)} for text in train]
    wanted = {
        reference(1, i)
        for i, text in enumerate(others)
        if any(_jaccard({*_shingles(text)}, other) >= least for other in shingles)
    }
    found = looked_up(train, others, least, batch=64)
    assert set(found) <= wanted
    assert len(found) >= 0.99 * len(wanted) > 100


def test_of_texts_that_are_all_alike_the_most_promising_are_measured(monkeypatch):
    others = [f"Room number {i:04d} on floor {i % 9} is free from nine to ten." for i in range(900)]
    measured = []
    monkeypatch.setattr(near, "_jaccard", lambda *sets: measured.append(sets) or _jaccard(*sets))
    neighbours = Neighbours(list(enumerate(others)), 0.7)
    for i in range(20):
        neighbours.add(i, others[i].replace("floor", "Floor"))
    hits = neighbours.found()
    assert neighbours.capped == 20
    assert 0 < len(measured) <= 20 * MEASURED
    assert [hits[i][0] for i in range(20)] == [1] * 20


def test_many_copies_of_one_text_are_one():
    text = "A blond girl sleeps on a couch."
    hits = looked_up([text, text + "!"], [text] * 200)
    assert len(hits) == 200
    assert tallied(hits).counts == {}


def test_the_texts_of_all_inputs_count():
    assert text_of([[" one "], ["two", "cafe\u0301"]]) == "one\ntwo\ncaf\u00e9"


def test_nothing_to_compare_with():
    assert looked_up(["a text"], []) == {}
    assert looked_up([], ["a text"]) == {}
