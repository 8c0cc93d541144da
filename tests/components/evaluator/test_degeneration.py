from __future__ import annotations

import pytest

from components.evaluator.degeneration import CHECKS, examine, repeated
from models.metrics import Rows

SOURCES = ["the dog ran far away", "two cats", "a man on a bike", "snow in the street"]
REFERENCES = ["der Hund lief weit weg", "zwei Katzen", "ein Mann auf einem Rad", "Schnee im Weg"]
CONFIG = {name: {"limit": 0.0, "action": "warn", "ratio": 2.0} for name in CHECKS}


def found(name, hypotheses, references=REFERENCES, sources=SOURCES):
    rows = Rows(hypotheses, [[text] if isinstance(text, str) else text for text in references])
    entry = examine(rows, sources, CONFIG)[name]
    assert entry["share"] == entry["rows"] / len(hypotheses)
    return {example["row"]: example["told"] for example in entry["examples"]}


def changed(row, text):
    return [text if at == row else one for at, one in enumerate(REFERENCES)]


@pytest.mark.parametrize("name", CHECKS)
def test_good_answers_have_no_fault(name):
    assert found(name, REFERENCES) == {}


def test_empty():
    assert found("empty", changed(1, " \n")) == {1: ""}
    assert found("empty", ["", *REFERENCES[1:]], [["", "x"], *REFERENCES[1:]]) == {}
    assert found("length_ratio", changed(0, "")) == {}  # told once


def test_copies():
    assert found("copies", changed(2, "A man  on a bike ")) == {2: ""}
    # Where that is what is wanted, it is right: names, numbers.
    assert found("copies", [SOURCES[2]], [SOURCES[2]], [SOURCES[2]]) == {}
    rows = Rows(REFERENCES, [[text] for text in REFERENCES])
    assert "copies" not in examine(rows, None, CONFIG)


def test_loops():
    told = found("loops", changed(0, "der Hund der Hund der Hund der Hund lief"))
    assert told == {0: "“der Hund” 4 times in a row"}
    assert found("loops", changed(1, "zwei zwei Katzen")) == {}
    # A reference may say a thing three times.
    assert found("loops", ["nein nein nein"], ["nein nein nein"], ["no"]) == {}


def test_length_ratio():
    told = found("length_ratio", changed(3, "Schnee im Weg und auf den Dächern der Stadt"))
    assert told == {3: "3.3 times longer than the reference"}
    told = found("length_ratio", changed(0, "der Hund"))
    assert told == {0: "2.8 times shorter than the reference"}
    # One reference that fits is enough, and of a few letters the ratio says nothing.
    fits = [["ein sehr langer Satz", REFERENCES[0][:12]], *REFERENCES[1:]]
    assert found("length_ratio", changed(0, "der Hund lief"), fits) == {}
    assert found("length_ratio", ["ja"], ["jawohl"], ["yes"]) == {}


def test_script():
    told = found("script", changed(0, "der Hund далеко"))
    assert told == {0: "46% of its letters are Cyrillic"}
    # What its own reference or the source has is right.
    greek = [["Αθήνα"], *([text] for text in ["der Hund lief weit weg"] * 3000)]
    rows = Rows(["Αθήνα", *["der Hund lief"] * 3000], greek)
    assert examine(rows, [""] * 3001, CONFIG)["script"]["rows"] == 0
    sources = ["the word далеко", *SOURCES[1:]]
    assert found("script", changed(0, "das Wort далеко"), sources=sources) == {}


def test_the_worst_are_shown():
    hypotheses = [" ".join(["ach"] * (3 + n % 7)) for n in range(14)]
    rows = Rows(hypotheses, [["nein"]] * 14)
    entry = examine(rows, ["no"] * 14, CONFIG)["loops"]
    assert entry["rows"] == 14
    assert [example["row"] for example in entry["examples"]] == [6, 13, 5, 12, 4]
    assert entry["examples"][0] == {
        "row": 6,
        "source": "no",
        "hypothesis": " ".join(["ach"] * 9),
        "reference": "nein",
        "told": "“ach” 9 times in a row",
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
def test_repeated(text, times, phrase):
    assert repeated(text) == (times, phrase)
