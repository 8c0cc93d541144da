import hypothesis.strategies as st
import pytest
from hypothesis import given

from regard.components.reporter.text_diff import closest_text, diff_texts, split_words


@given(st.text(), st.text())
def test_the_parts_make_up_the_texts(one, other):
    for text, parts in zip((one, other), diff_texts(one, other), strict=True):
        assert "".join(part for part, _ in parts) == text


@given(st.text())
def test_equal_texts_do_not_differ(text):
    assert not any(differs for parts in diff_texts(text, text) for _, differs in parts)


def test_neighbouring_differences_include_the_space_between_them():
    one, other = diff_texts("a big red dog barks", "a small blue dog barks")
    assert one == [("a ", False), ("big red", True), (" dog barks", False)]
    assert other == [("a ", False), ("small blue", True), (" dog barks", False)]


def test_extra_words_differ_in_one_text_only():
    one, other = diff_texts("a dog, barks", "a dog barks")
    assert one == [("a dog", False), (",", True), (" barks", False)]
    assert other == [("a dog barks", False)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't, 'tis 3.5.", ["don't", ",", " ", "'", "tis", " ", "3.5", "."]),
        ("T-Shirt l’eau 1,000-", ["T-Shirt", " ", "l’eau", " ", "1,000", "-"]),
        ("हिन्दी है", ["हिन्दी", " ", "है"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("我们走", ["我", "们", "走"]),
        ("über  Bär", ["über", "  ", "Bär"]),
        ("", []),
    ],
)
def test_split_words(text, words):
    assert split_words(text) == words


def test_the_ends_of_truncated_texts_do_not_differ():
    one, other = diff_texts("a red dog and", "a blue dog…", truncated=True)
    assert one == [("a ", False), ("red", True), (" dog ", False), ("and", False)]
    assert other == [("a ", False), ("blue", True), (" dog", False), ("…", False)]


def test_closest_text():
    assert closest_text("a red dog", ["no cat", "a big red dog", "a red dog"]) == 2
    assert closest_text("x", ["a", "b"]) == 0
    assert closest_text("x " * 100_000, ["a"]) == 0  # a single candidate needs no comparison
