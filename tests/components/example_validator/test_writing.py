from __future__ import annotations

import pytest

from components.example_validator.tally import Tally, reference
from components.example_validator.writing import above, judged, note, usual


def tallied(train, rest=(), share=0.3):
    """The tally of a training shard and of another, each row a source and a target."""
    parts = []
    for shard, rows in enumerate((train, rest)):
        tally = Tally(rows={shard: len(rows)})
        for i, (source, target) in enumerate(rows):
            texts = {"source": [source], "target": [target]}
            note(tally, reference(shard, i), texts, share, train=shard == 0)
        parts.append(tally)
    return Tally.total(parts)


def found(tally, least=0.01):
    return judged(tally, usual(tally, least)).examples.get("script", [])


PLAIN = [("good day", "你好")] * 99


def test_a_row_in_the_script_of_the_other_side_is_strange():
    assert found(tallied([*PLAIN, ("你好", "good day")], [("да", "你")])) == [
        (99, None),
        (reference(1, 0), None),
    ]


def test_a_row_counts_once_whatever_is_strange_about_it():
    tally = tallied(PLAIN, [("да", "да"), ("好да", "да")])
    assert judged(tally, usual(tally, 0.01)).counts["script"] == {1: 2}


@pytest.mark.parametrize(
    ("target", "strange"),
    [
        ("我有iPhone", False),
        ("我有ваз", True),
        ("我有一个好ваз", True),
        ("我有一个很好的ваз", False),
        ("…", False),
    ],
)
def test_a_few_letters_of_another_script_are_no_matter(target, strange):
    names = [("good day", "我有 iPhone")] * 10
    assert bool(found(tallied([*PLAIN, *names], [("good", target)]))) is strange


def test_only_train_says_what_is_usual():
    tally = tallied(PLAIN, [("всё", "你")] * 300)
    assert usual(tally, 0.01) == {"source": {"Latn"}, "target": {"Hani"}}


def test_other_counts_stay_as_they_are():
    tally = tallied([*PLAIN, ("да", "да")])
    tally.add("too_long", 7)
    tally.lengths["source"] = {0: [1, 2]}
    tally.capped, tally.seen = 3, b"seen"
    after = judged(tally, usual(tally, 0.01))
    assert after.counts == {"too_long": {0: 1}, "script": {0: 1}}
    assert (after.rows, after.lengths) == (tally.rows, tally.lengths)
    assert (after.capped, after.seen) == (tally.capped, tally.seen)


def test_without_train_nothing_is_strange():
    assert found(tallied([], [("да", "да")])) == []


def test_scripts_with_much_of_a_text():
    assert above({"Latn": 3, "Cyrl": 3, "Grek": 1}, 0.3) == ["Cyrl", "Latn"]
    assert above({"Latn": 3}, 0.3) == ["Latn"]
    assert above({}, 0.3) == []
