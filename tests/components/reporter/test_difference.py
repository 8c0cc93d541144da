from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from components.reporter.difference import closest, differences, pieces


@given(st.text(), st.text())
def test_the_parts_are_the_texts(one, other):
    own, theirs = differences(one, other)
    assert "".join(text for text, _ in own) == one
    assert "".join(text for text, _ in theirs) == other


@given(st.text())
def test_nothing_differs_from_itself(text):
    assert not any(differs for part in differences(text, text) for _, differs in part)


def test_words_that_differ_are_told_with_the_space_between_them():
    own, theirs = differences("a big red dog barks", "a small blue dog barks")
    assert own == [("a ", False), ("big red", True), (" dog barks", False)]
    assert theirs == [("a ", False), ("small blue", True), (" dog barks", False)]


def test_what_one_alone_has_is_told_there_alone():
    own, theirs = differences("a dog, barks", "a dog barks")
    assert own == [("a dog", False), (",", True), (" barks", False)]
    assert theirs == [("a dog barks", False)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("don't 3.5", ["don", "'", "t", " ", "3", ".", "5"]),
        ("我们走", ["我", "们", "走"]),
        ("über  Bär", ["über", "  ", "Bär"]),
        ("", []),
    ],
)
def test_pieces(text, found):
    assert pieces(text) == found


def test_nothing_is_said_of_ends_that_were_cut():
    own, theirs = differences("a red dog and", "a blue dog…", cut=True)
    assert own == [("a ", False), ("red", True), (" dog ", False), ("and", False)]
    assert theirs == [("a ", False), ("blue", True), (" dog", False), ("…", False)]


def test_the_closest_of_several():
    assert closest("a red dog", ["no cat", "a big red dog", "a red dog"]) == 2
    assert closest("x", ["a", "b"]) == 0
    assert closest("x " * 100_000, ["a"]) == 0  # of one there is nothing to compare
