"""Baselines and the sentence splitter."""

import pytest

from regard.models.metrics.base import Rows
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


def predict(name, references, sources=(), **columns):
    rows = Rows([references[0][0]] * len(references), references, columns)
    return list(BASELINES[name].predict(rows, sources))


def test_outputs_for_texts():
    text = "One. Two. Three. Four."
    references = [["a", "b"], ["b"], ["c"]]
    sources = [text, "", "x"]
    assert predict("lead_1", references, sources) == ["One.", "", "x"]
    assert predict("lead_3", references, sources) == ["One. Two. Three.", "", "x"]
    assert predict("copy", references, sources) == sources
    assert predict("most_frequent", references) == ["b", "b", "b"]


def test_chance_gives_the_references_of_other_rows():
    references = [[str(n), "other"] for n in range(100)]
    outputs = predict("chance", references)
    assert sorted(outputs) == sorted(one for one, _ in references)
    assert sum(output == one for output, (one, _) in zip(outputs, references, strict=True)) < 10
    assert outputs == predict("chance", references)
    numbers = predict("chance", [[0.1], [0.2], [0.3]])
    assert sorted(numbers) == [0.1, 0.2, 0.3]


def test_chance_draws_positions_of_points():
    points = [[[0.0, 0.0]] * count for count in (3, 5, 2)]
    references = [[[0, 1, 2]], [[3, 4]], [[0, 1, 1, 1]]]
    outputs = predict("chance", references, points=points)
    assert [len(one) for one in outputs] == [3, 2, 2]
    for output, one in zip(outputs, points, strict=True):
        assert len(set(output)) == len(output)
        assert set(output) <= set(range(len(one)))
