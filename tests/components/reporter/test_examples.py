from __future__ import annotations

import pytest

from components.reporter import examples
from models.metrics import Rows
from tests.components.reporter import runs


def test_no_row_is_shown_twice_and_of_equals_the_longest():
    values = [5.0] * 10 + [1.0, 2.0] + [9.0] * 10
    lengths = list(range(22))
    found = examples.choose(values, lengths)
    assert found["worst"] == [10, 11, 9, 8, 7, 6]
    assert found["best"] == [21, 20, 19, 18, 17, 16]
    assert len(found["chance"]) == examples.SHOWN
    everything = [row for rows in found.values() for row in rows]
    assert len(set(everything)) == len(everything)
    assert found == examples.choose(values, lengths)


def test_few_rows():
    assert examples.choose([1.0, 0.0], [1, 1]) == {"worst": [1, 0], "best": [], "chance": []}


def test_texts_are_judged_by_chrf_alone():
    rows = Rows(["the cat sat", "x"], [["the cat sat"], ["the cat sat"]])
    values, told = examples.quality(rows, ["exact_match", "bleu"], {})
    assert values[0] > values[1]
    assert told[0] == "chrF 100.00"


def test_numbers_are_judged_by_their_distance():
    values, told = examples.quality(Rows([0.5, 0.9], [[0.25], [0.9]]), ["pearson"], {})
    assert values == [-0.25, 0.0]
    assert told[0] == "off by 0.25"


def test_positions_are_judged_by_the_metric_of_the_run():
    points = {"points": [[[0, 0], [1, 0], [1, 1], [0, 1]]] * 2}
    rows = Rows([[0, 1, 2, 3], [0, 2, 1, 3]], [[[0, 1, 2, 3]]] * 2, points)
    values, told = examples.quality(rows, ["tour_length"], {})
    assert values[0] == pytest.approx(-4.0)
    assert values[1] < values[0]
    assert told[0] == "tour length 4.0000"
    assert examples.quality(rows, [], {})[0] == [1.0, 0.0]


def test_the_cards_of_texts(facts):
    worst, chance, best = examples.groups(facts)
    assert [group["name"] for group in (worst, chance, best)] == ["worst", "chance", "best"]
    card = worst["cards"][0]
    assert card["where"].startswith("test.tsv:")
    assert "chrF" in card["told"]
    assert "log-probability -" in card["told"]
    assert not card["right"]
    assert any(differs and "MORE" in text for text, differs in card["answer"])
    assert card["look"]["outputs"]["alignment"][0] == [0.8, 0.2, 0.0]
    assert best["cards"][0]["right"]


def test_a_look_that_nobody_could_read_is_left_out(facts, monkeypatch):
    monkeypatch.setattr(examples, "_MOST_WEIGHTS", 5)
    assert all(card["look"] is None for group in examples.groups(facts) for card in group["cards"])


def test_long_texts_are_cut(facts, monkeypatch):
    monkeypatch.setattr(examples, "_MOST_CHARACTERS", 6)
    texts = [i["text"] for g in examples.groups(facts) for c in g["cards"] for i in c["inputs"]]
    assert max(map(len, texts)) == 6
    assert texts[0].endswith("…")


def test_images_are_on_the_page_and_missing_ones_are_not(tmp_path):
    groups = examples.groups(runs.image_run(tmp_path))
    sources = {
        entry["path"]: entry["source"]
        for group in groups
        for card in group["cards"]
        for entry in card["inputs"]
    }
    assert sources["images/2.png"] is None
    assert sources["images/0.png"].startswith("data:image/jpeg;base64,")


def test_positions_and_points(tmp_path):
    groups = examples.groups(runs.points_run(tmp_path))
    card = groups[0]["cards"][0]
    assert card["answer"] == [("0 → 1 → 2", False)]
    assert card["reference"] == [("0 → 2 → 1", False)]
    assert card["look"]["inputs"]["points"] == [[0.1, 0.2], [0.9, 0.4], [0.5, 0.8]]
    assert card["look"]["outputs"]["order"] == [0, 1, 2]


def test_nothing_was_answered(tmp_path):
    facts = runs.number_run(tmp_path)
    (tmp_path / "predictions" / "candidate.parquet").unlink()
    assert examples.groups(facts) == []
    assert examples.chosen(facts) == {}
