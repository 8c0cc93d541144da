from __future__ import annotations

import math

from components.reporter import examples
from components.reporter.ranking import ranked
from tests import fake_models
from tests.components.reporter import runs


def groups(facts):
    return examples.groups(facts, ranked(facts))


def cards(facts):
    return [card for group in groups(facts) for card in group["cards"]]


def test_the_cards_of_texts(facts):
    worst, chance, best = groups(facts)
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
    assert all(card["look"] is None for card in cards(facts))


def test_weights_that_are_no_numbers_are_not_drawn():
    row = {"hypothesis": "x", "alignment": [[0.5, math.nan]], "source_pieces": ["a", "b"]}
    assert examples.look({**row, "target_pieces": ["x"]}, fake_models.Reverser().contract()) is None


def test_long_texts_are_cut(facts, monkeypatch):
    monkeypatch.setattr(examples, "_MOST_CHARACTERS", 6)
    texts = [entry["text"] for card in cards(facts) for entry in card["inputs"]]
    assert max(map(len, texts)) == 6
    assert texts[0].endswith("…")


def test_images_are_on_the_page_and_missing_ones_have_no_look(tmp_path):
    found = {card["inputs"][0]["path"]: card for card in cards(runs.image_run(tmp_path))}
    gone, there = found["images/2.png"], found["images/0.png"]
    assert gone["inputs"][0]["source"] is None
    assert gone["look"] is None
    assert there["inputs"][0]["source"].startswith("data:image/jpeg;base64,")
    assert there["look"] is not None


def test_positions_and_points(tmp_path):
    card = groups(runs.points_run(tmp_path))[0]["cards"][0]
    assert card["answer"] == [("0 → 1 → 2", False)]
    assert card["reference"] == [("0 → 2 → 1", False)]
    assert card["look"]["inputs"]["points"] == [[0.1, 0.2], [0.9, 0.4], [0.5, 0.8]]
    assert card["look"]["outputs"]["order"] == [0, 1, 2]


def test_nothing_was_answered(tmp_path):
    facts = runs.number_run(tmp_path)
    (tmp_path / "predictions" / "candidate.parquet").unlink()
    assert groups(facts) == []
