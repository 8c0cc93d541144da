"""Changes of texts."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.core.characters import is_blank
from regard.core.text_noise import (
    KINDS,
    LAYOUTS,
    NoiseOptions,
    change_text,
    draw_kind,
    keyboard_neighbours,
    noisy_features,
)
from regard.models import tasks

OPTIONS = NoiseOptions()
KEY = (17, 0, 3)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("upper_case", "Zwei große Hunde, 3.5 km.", "ZWEI GROSSE HUNDE, 3.5 KM."),
        ("title_case", "isn't it a  ǆep?\nno", "Isn't It A  ǅep?\nNo"),
        ("missing_accents", "Été: naïve Łódź, đi đâu, άλφα", "Ete: naive Lodz, di dau, αλφα"),
        ("missing_punctuation", "«Well», isn't it 3.5 km? – Yes!", "Well isn't it 3.5 km Yes"),
        ("doubled_punctuation", "Well, it's 3.5. Yes?!", "Well,, it's 3.5.. Yes??!!"),
        ("doubled_punctuation", "你好，世界。", "你好，，世界。。"),
        ("missing_punctuation", "你好，世界。", "你好，世界"),
    ],
)
def test_changes_without_chance(kind, text, expected):
    assert change_text(text, kind, OPTIONS, KEY) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *itertools.product(("upper_case", "title_case"), ["我不累。", "हिन्दी में", "مرحبا بالعالم"]),
        # Marks of other scripts make other letters.
        *itertools.product(
            ("missing_accents",),
            ["हिन्दी के लिए", "가방이", "がんばって", "ёж й", "مَرْحَبًا", "שָׁלוֹם", "abc"],
        ),
        ("typing_errors", "我不累。 12 345 ..."),
        ("missing_punctuation", "..."),
        ("missing_punctuation", "no  marks "),
        *itertools.product(KINDS, ["", " ", "\u200b", "\ud800"]),
    ],
)
def test_texts_that_stay(kind, text):
    assert change_text(text, kind, NoiseOptions(rate=1.0), KEY) == text or not text.strip()


def test_a_typing_error_is_a_key_next_to_the_letter():
    text, options = "Two small Dogs", NoiseOptions(rate=1.0)
    results = {change_text(text, "typing_errors", options, (1, number)) for number in range(200)}
    assert len(results) > 100
    neighbours = keyboard_neighbours("qwerty")
    for result in results:
        for old, new in zip(text.split(), result.split(), strict=True):
            ((before, after),) = ((a, b) for a, b in zip(old, new, strict=True) if a != b)
            assert after.lower() in neighbours[before.lower()]
            assert before.isupper() == after.isupper()


def test_the_rate_is_the_share_of_words_with_an_error():
    text = "word " * 2000
    for rate in (0.0, 0.1, 0.5):
        changed = change_text(text, "typing_errors", NoiseOptions(rate=rate), KEY)
        wrong = sum(word != "word" for word in changed.split())
        assert wrong / 2000 == pytest.approx(rate, abs=0.04)
    spaced = change_text(text, "spaces", NoiseOptions(rate=0.5), KEY)
    assert spaced.replace(" ", "") == text.replace(" ", "")
    words = spaced.split()
    assert sum(len(word) < 4 for word in words) == pytest.approx(2 * 500, abs=160)
    assert sum(len(word) > 4 for word in words) == pytest.approx(500, abs=160)


def test_keyboards():
    qwerty = keyboard_neighbours("qwerty")
    assert set(qwerty["s"]) == set("wedaxz")
    assert set(qwerty["q"]) == set("wa")
    assert "z" in keyboard_neighbours("qwertz")["t"]
    assert "ö" in keyboard_neighbours("qwertz")["p"]
    assert set(keyboard_neighbours("azerty")["a"]) == set("zq")
    for layout in LAYOUTS:
        neighbours = keyboard_neighbours(layout)
        assert set(neighbours) == set("".join(LAYOUTS[layout]))
        for letter, others in neighbours.items():
            assert 2 <= len(others) <= 6
            assert letter not in others
            assert all(letter in neighbours[other] for other in others)


@pytest.mark.parametrize("kind", KINDS)
def test_symbols_stay(kind):
    options = NoiseOptions(rate=1.0, symbols=("<fr>", "<date>", "<date>s"))
    text = "<fr> on <date>, é <date>s. dogs bark"
    results = {change_text(text, kind, options, (1, number)) for number in range(20)}
    for result in results:
        assert result != text
        assert result.startswith("<fr>")
        assert (result.count("<date>"), result.count("<date>s")) == (2, 1)


def test_a_space_between_a_symbol_and_a_word_remains():
    options = NoiseOptions(symbols=("<date>",))
    text = "<date>, on a day (<date>)"
    assert change_text(text, "missing_punctuation", options, KEY) == "<date> on a day <date>"


@settings(deadline=None)
@given(st.text(), st.sampled_from(sorted(KINDS)), st.integers(0, 2**64))
def test_any_text(text, kind, seed):
    options = NoiseOptions(rate=1.0, symbols=("<a>", "("))
    changed = change_text(text, kind, options, (seed,))
    assert changed == change_text(text, kind, options, (seed,))
    assert is_blank(changed) == is_blank(text)
    assert changed.count("<a>") >= text.count("<a>")


def test_long_runs_of_marks():
    marks = 200_000
    text = "a" + "\u0301\u0323" * marks + "b"
    assert change_text(text, "missing_accents", OPTIONS, KEY) == "ab"
    other = "क" + "\u093c" * marks
    assert change_text(other, "missing_accents", OPTIONS, KEY) == other


def test_kinds_have_their_shares():
    probabilities = {"upper_case": 0.3, "spaces": 0.2}
    kinds = [draw_kind(probabilities, (5, 1, row)) for row in range(3000)]
    assert kinds == [draw_kind(probabilities, (5, 1, row)) for row in range(3000)]
    assert kinds.count("upper_case") / 3000 == pytest.approx(0.3, abs=0.03)
    assert kinds.count("spaces") / 3000 == pytest.approx(0.2, abs=0.03)
    assert kinds.count(None) / 3000 == pytest.approx(0.5, abs=0.03)
    assert {draw_kind({"spaces": 1.0}, (row,)) for row in range(100)} == {"spaces"}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("translation", ["source"]),
        ("summarisation", ["source"]),
        ("similarity", ["first", "second"]),
        ("span", ["question"]),  # an answer is a part of the passage
        ("captioning", []),
        ("pointer", []),
    ],
)
def test_inputs_that_change(task, expected):
    assert noisy_features(tasks.describe(task).features) == expected
