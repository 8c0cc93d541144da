"""Kinds of errors in single outputs."""

import pytest

from regard.components.evaluator.output_errors import ERROR_KINDS, find_errors

SOURCE = "In 2019 Peter paid 1,250.50 euros for a red bicycle in Michigan."
REFERENCE = "2019 bezahlte Peter in Michigan 1.250,50 Euro für ein rotes Fahrrad."


@pytest.mark.parametrize(
    ("output", "kinds"),
    [
        (REFERENCE, []),
        ("2019 zahlte Peter in Michigan 1.250,50 Euro für ein rotes Rad.", []),
        (REFERENCE.replace("2019", "2018"), ["number"]),
        (REFERENCE.replace("1.250,50", "1.250"), ["number"]),
        (REFERENCE.replace("für ein", "für 2"), ["number"]),
        (REFERENCE.replace("Peter", "Paul"), ["name"]),
        (REFERENCE.replace("Peter", "Peters Sohn"), []),  # an ending, and one more word
        ("2019 bezahlte Peter in Michigan 1.250,50 Euro.", ["omission"]),
        (REFERENCE[:-1] + ", das er sehr liebt.", ["addition"]),
        (REFERENCE.replace("Euro", "Euro Euro"), ["repetition"]),
        (REFERENCE.replace("ein rotes", "ein rotes ein rotes"), ["repetition"]),
        (REFERENCE[:-1], ["punctuation"]),
        (REFERENCE[:-1] + "!", ["punctuation"]),
        (REFERENCE[:-1] + " (.", ["punctuation"]),
        (REFERENCE.replace("ein rotes Fahrrad", "a red bicycle"), ["untranslated"]),
        ("", ["number", "name", "omission", "punctuation"]),
    ],
)
def test_errors_of_a_translation(output, kinds):
    assert find_errors(output, [REFERENCE], SOURCE) == kinds


def test_any_reference_allows_an_output():
    output = REFERENCE.replace("2019", "2018")
    references = [REFERENCE, output]
    assert find_errors(output, references, SOURCE.replace("2019", "2018 (2019)")) == []
    assert find_errors(output[:-1], [output, output[:-1]], SOURCE) == []


def test_languages_without_spaces_and_other_digits():
    reference = "他在公园里和他的狗一起散步。"
    assert find_errors("他和狗散步。", [reference], "He walks in the park with his dog.") == [
        "omission"
    ]
    assert find_errors("他在公园里和他的狗一起散步.", [reference], "") == []
    assert find_errors("٣٥ كتابا", ["35 books"], "") == []
    assert find_errors("٣٦ كتابا", ["35 books"], "") == ["number"]


@pytest.mark.parametrize(
    ("output", "reference", "source", "has_error"),
    [
        ("15 Millionen", "1,5 Millionen", "1.5 million", True),
        ("3,50 Euro", "3,5 Euro", "3.5 euros", False),
        ("1.250 Euro", "1250 Euro", "1,250 euros", False),
        ("10.30 Uhr", "10:30 Uhr", "10:30", False),
        ("zwei Hunde", "2 Hunde", "two dogs", False),
        ("3 Hunde", "2 Hunde", "two dogs", True),
        ("zwei Hunde", "2 Hunde", "", True),
    ],
)
def test_numbers_in_other_notations(output, reference, source, has_error):
    assert find_errors(output, [reference], source, {"number"}) == ["number"] * has_error


def test_only_the_chosen_kinds():
    assert find_errors("", [REFERENCE], SOURCE, {"omission"}) == ["omission"]
    assert set(find_errors("", [REFERENCE], SOURCE)) <= set(ERROR_KINDS)


@pytest.mark.parametrize("text", ["a " * 100_000, "(" * 100_000, "1" * 100_000, "\ud800", "² ½ ٣"])
def test_hostile_texts_have_the_known_kinds_only(text):
    assert set(find_errors(text, [text[::-1] + " b"], text)) <= set(ERROR_KINDS)
