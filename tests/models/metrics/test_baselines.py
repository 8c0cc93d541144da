"""The first sentences of a text, found by its lines or by its signs."""

import pytest

from models.metrics.baselines import BASELINES, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One ends. Another one begins! Does it? Yes.",
         ["One ends.", "Another one begins!", "Does it?", "Yes."]),
        ("It costs 3.5, e.g. here, i.e. more.", ["It costs 3.5, e.g. here, i.e. more."]),
        ('He said "Stop." Then he left. (So did she.) “Why?” 42 know.',
         ['He said "Stop."', "Then he left.", "(So did she.)", "“Why?”", "42 know."]),
        ("first line. Still first\n\n second line \n", ["first line. Still first", "second line"]),
        ("今天很好。明天呢？", ["今天很好。", "明天呢？"]),
        ("Élan. Été. Ωμέγα.", ["Élan.", "Été.", "Ωμέγα."]),
        ("no sign at all", ["no sign at all"]),
        ("  ", []),
    ],
)  # fmt: skip
def test_sentences(text, found):
    assert sentences(text) == found


def test_what_answers_without_a_model():
    text = "One. Two. Three. Four."
    answers = {name: baseline.answer(text) for name, baseline in BASELINES.items()}
    assert answers == {"lead_1": "One.", "lead_3": "One. Two. Three.", "copy": text}
    assert [baseline.answer("") for baseline in BASELINES.values()] == ["", "", ""]
