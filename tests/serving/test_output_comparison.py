import numpy as np
import pytest

from regard.serving.output_comparison import OutputComparison

LIMITS = {"absolute": 1e-3, "relative": 1e-4, "array": 1e-3, "ties": 0.1}
ANSWER = {
    "translation": "CBA",
    "score": -1.5,
    "source_pieces": ["a", "b", "c", "</s>"],
    "alignment": np.eye(4, dtype=np.float32),
}
KEPT = {**ANSWER, "alignment": np.eye(4).tolist()}


def difference(got, want, answer="translation", score="score"):
    contract = {"answer": answer, "score": score}
    return OutputComparison(contract, LIMITS).compare(got, want)


EQUAL = {
    "itself": (ANSWER, ANSWER),
    "lists of JSON": (ANSWER, KEPT),
    "within the tolerance": ({**ANSWER, "score": -1.4995}, KEPT),
    "outputs in common": (ANSWER, {"translation": "CBA"}),
    "array and list": ({"translation": np.array([2, 0], np.int32)}, {"translation": [2, 0]}),
    "numbers without a bound": (
        {"scores": np.array([-np.inf, -1e9, -100.0])},
        {"scores": [-np.inf, -1e9 + 50, -100.005]},
    ),
    "empty arrays": ({"alignment": np.zeros((0, 3), np.float32)}, {"alignment": []}),
}


@pytest.mark.parametrize(("got", "want"), EQUAL.values(), ids=EQUAL)
def test_equal_outputs(got, want):
    assert difference(got, want) == ("", False)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"score": -1.51}, "the scores differ: -1.510000 and -1.500000"),
        ({"score": float("nan")}, "the scores differ: nan and -1.500000"),
        ({"source_pieces": ["x"]}, "the source_pieces differ: ['x'] and ['a', 'b', 'c', '</s>']"),
        ({"alignment": np.ones((1, 1))}, "the shapes of the alignments differ: (1, 1) and (4, 4)"),
        ({"alignment": np.eye(4) * 0.5}, "the alignments differ by 0.500000"),
        ({"alignment": np.full((4, 4), np.nan)}, "the alignments differ by nan"),
    ],
)
def test_differences_are_reported(change, text):
    assert difference({**ANSWER, **change}, KEPT) == (text, False)


def test_another_answer_of_the_same_score_is_a_tie():
    text, tie = difference({**ANSWER, "translation": "ABC", "score": -1.4999}, KEPT)
    assert text == "the translations differ: 'ABC' (-1.49990), 'CBA' (-1.50000)"
    assert tie
    assert not difference({**ANSWER, "translation": "ABC", "score": -9.0}, KEPT)[1]


def test_another_answer_without_a_score_is_no_tie():
    got, want = {"tour": np.array([0, 1, 2])}, {"tour": [0, 2, 1]}  # positions are exact
    text = "the tours differ: [0, 1, 2], [0, 2, 1]"
    assert difference(got, want, "tour", None) == (text, False)


def test_an_answer_that_is_a_number_is_close_or_not():
    assert difference({"similarity": 4.2001}, {"similarity": 4.2}, "similarity", None)[0] == ""
    text, tie = difference({"similarity": 4.3}, {"similarity": 4.2}, "similarity", None)
    assert (text, tie) == ("the similarities differ: 4.300000 and 4.200000", False)


def test_a_list_of_the_best_is_a_tie_where_all_its_numbers_are():
    numbers = np.array([-1.0, -1.0, -1e9], np.float32)
    got = {"translations": ["a", "b", ""], "log_probabilities": numbers}
    want = {"translations": ["b", "a", ""], "log_probabilities": numbers + np.float32(1e-4)}
    assert difference(got, want)[1]
    text, tie = difference(got, {**want, "log_probabilities": numbers - 1})
    assert text == "the translations differ: ['a', 'b', ''] and ['b', 'a', '']"
    assert not tie


def test_numbers_that_are_none_are_impossible():
    comparison = OutputComparison({"answer": "translation", "score": "score"}, LIMITS)
    assert comparison.find_invalid(ANSWER) == []
    assert comparison.find_invalid({**ANSWER, "score": float("nan")}) == ["the score is nan"]


def test_an_empty_text_needs_no_score():
    comparison = OutputComparison({"answer": "translation", "score": "score"}, LIMITS)
    empty = {**ANSWER, "translation": "", "score": float("nan")}
    assert comparison.find_invalid(empty) == []
    assert comparison.compare(empty, dict(empty)) == ("", False)
    several = {"log_probabilities": np.array([np.nan, -1.0])}
    assert comparison.compare(several, dict(several)) == ("", False)
    comparison = OutputComparison({"answer": "similarity", "score": None}, LIMITS)
    assert comparison.find_invalid({"similarity": float("inf")}) == ["the similarity is inf"]
