import pytest

from regard.components.evaluator.degeneration import (
    CHECKS,
    find_degenerate_outputs,
    longest_repetition,
)
from regard.components.settings.evaluation import OutputChecksConfig
from regard.models.metrics import Rows

SOURCES = ["the dog ran far away", "two cats", "a man on a bike", "snow in the street"]
REFERENCES = ["der Hund lief weit weg", "zwei Katzen", "ein Mann auf einem Rad", "Schnee im Weg"]
LIMITS: dict = {name: {"limit": 0.0} for name in CHECKS}
LIMITS["length_ratio"]["ratio"] = 2.0
CONFIG = OutputChecksConfig(**LIMITS)


def descriptions(name, hypotheses, references=REFERENCES, sources=SOURCES):
    rows = Rows(hypotheses, [[text] if isinstance(text, str) else text for text in references])
    check = find_degenerate_outputs(rows, sources, CONFIG)[name]
    assert check.share == check.rows / len(hypotheses)
    return {example.row: example.description for example in check.examples}


def with_output(row, text):
    return [text if at == row else one for at, one in enumerate(REFERENCES)]


@pytest.mark.parametrize("name", CHECKS)
def test_good_outputs_are_not_degenerate(name):
    assert descriptions(name, REFERENCES) == {}


def test_empty():
    assert descriptions("empty", with_output(1, " \n")) == {1: ""}
    assert descriptions("empty", ["", *REFERENCES[1:]], [["", "x"], *REFERENCES[1:]]) == {}
    assert descriptions("length_ratio", with_output(0, "")) == {}  # reported by one check


def test_copies():
    assert descriptions("copies", with_output(2, "A man  on a bike ")) == {2: ""}
    # A copy may be correct, as for names and numbers.
    assert descriptions("copies", [SOURCES[2]], [SOURCES[2]], [SOURCES[2]]) == {}
    rows = Rows(REFERENCES, [[text] for text in REFERENCES])
    assert "copies" not in find_degenerate_outputs(rows, None, CONFIG)


def test_repetitions():
    result = descriptions("repetitions", with_output(0, "der Hund der Hund der Hund der Hund lief"))
    assert result == {0: "“der Hund” 4 times in a row"}
    assert descriptions("repetitions", with_output(1, "zwei zwei Katzen")) == {}
    # A reference may repeat itself.
    assert descriptions("repetitions", ["nein nein nein"], ["nein nein nein"], ["no"]) == {}


def test_length_ratio():
    result = descriptions(
        "length_ratio", with_output(3, "Schnee im Weg und auf den Dächern der Stadt")
    )
    assert result == {3: "3.3 times longer than the reference"}
    result = descriptions("length_ratio", with_output(0, "der Hund"))
    assert result == {0: "2.8 times shorter than the reference"}
    # One reference of similar length is enough; short texts are not checked.
    fits = [["ein sehr langer Satz", REFERENCES[0][:12]], *REFERENCES[1:]]
    assert descriptions("length_ratio", with_output(0, "der Hund lief"), fits) == {}
    assert descriptions("length_ratio", ["ja"], ["jawohl"], ["yes"]) == {}


def test_script():
    result = descriptions("script", with_output(0, "der Hund далеко"))
    assert result == {0: "46% of its letters are Cyrillic"}
    # Scripts of the row's own reference or source are expected.
    greek = [["Αθήνα"], *([text] for text in ["der Hund lief weit weg"] * 3000)]
    rows = Rows(["Αθήνα", *["der Hund lief"] * 3000], greek)
    assert find_degenerate_outputs(rows, [""] * 3001, CONFIG)["script"].rows == 0
    sources = ["the word далеко", *SOURCES[1:]]
    assert descriptions("script", with_output(0, "das Wort далеко"), sources=sources) == {}


def test_the_worst_outputs_are_examples():
    hypotheses = [" ".join(["ach"] * (3 + n % 7)) for n in range(14)]
    rows = Rows(hypotheses, [["nein"]] * 14)
    check = find_degenerate_outputs(rows, ["no"] * 14, CONFIG)["repetitions"]
    assert check.rows == 14
    assert [example.row for example in check.examples] == [6, 13, 5, 12, 4]
    assert check.examples[0].model_dump() == {
        "row": 6,
        "source": "no",
        "hypothesis": " ".join(["ach"] * 9),
        "reference": "nein",
        "description": "“ach” 9 times in a row",
    }


@pytest.mark.parametrize(
    ("text", "times", "phrase"),
    [
        ("", 1, ""),
        ("a b c", 1, ""),
        ("a a", 1, ""),
        ("a b a b a", 1, ""),
        ("x a b a b a b y", 3, "a b"),
        ("a b c d a b c d a b c d", 3, "a b c d"),
        ("a a a a", 4, "a"),
        ("a dog in the park and " * 6, 6, "a dog in the park and"),
        ("Schifffahrt und Hahaha", 1, ""),
        ("哈哈哈哈哈哈 好", 6, "哈"),
        ("我喜欢吃苹果" * 5, 5, "我喜欢吃苹果"),
        ("5000000.00 EUR", 1, ""),
    ],
)
def test_longest_repetition(text, times, phrase):
    assert longest_repetition(text) == (times, phrase)
