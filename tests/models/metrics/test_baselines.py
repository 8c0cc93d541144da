"""Baselines and the sentence splitter."""

import pytest

from regard.models.metrics.baselines import BASELINES, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_sentences(text, expected):
    assert sentences(text) == expected


def test_baseline_outputs():
    text = "One. Two. Three. Four."
    outputs = {name: baseline.predict(text) for name, baseline in BASELINES.items()}
    assert outputs == {"lead_1": "One.", "lead_3": "One. Two. Three.", "copy": text}
    assert [baseline.predict("") for baseline in BASELINES.values()] == ["", "", ""]
