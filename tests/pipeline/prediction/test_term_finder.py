"""The terms of a glossary in a text, compared with an alternation of regular expressions."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.pipeline.prediction import term_finder
from regard.pipeline.prediction.term_finder import TermFinder

_WORD = term_finder._WORD.pattern


def expected_terms(terms, text):
    """The leftmost and longest whole words, by Python's regular expressions."""
    patterns = []
    for term in sorted(set(terms), key=len, reverse=True):
        is_open = [re.match(r"\w", end) and not re.match(_WORD, end) for end in (term[0], term[-1])]
        start = "" if is_open[0] else f"(?<!{_WORD})"
        end = "" if is_open[1] else f"(?!{_WORD})"
        patterns.append(start + re.escape(term) + end)
    return re.findall("|".join(patterns), text) if patterns else []


TEXT = st.text("ab c-京ก.\n", max_size=20)
TERM = st.text("ab c-京ก.", min_size=1, max_size=6)


@settings(deadline=None)
@given(st.lists(TERM, max_size=12), TEXT)
def test_terms_are_those_of_a_regular_expression(terms, text):
    assert TermFinder(terms).find(text) == expected_terms(terms, text)


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        (["a", "ab", "ab c"], "ab cd ab", ["ab", "ab"]),  # the longest is not a whole word
        (["a b", "b c"], "a b c", ["a b"]),  # the first counts
        (["c++", "c"], "c c++ c+", ["c", "c++", "c"]),
        (["x" * 500], "x" * 499, []),
        ([""], "abc", []),
        ([], "abc", []),
    ],
)
def test_overlapping_terms(terms, text, expected):
    assert TermFinder(terms).find(text) == expected


def test_many_terms_of_many_lengths():
    words = [f"w{number}" for number in range(10_000)]
    nested = [" ".join(words[:count]) for count in range(1, 60)]
    finder = TermFinder(words + nested)
    assert finder.find(" ".join(words[::7])) == words[::7]
    assert finder.find(" ".join([*words[:61]])) == [nested[-1], *words[59:61]]
