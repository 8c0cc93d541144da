"""Selection and scores of example rows, and their cards."""

import dataclasses
import io
import math

import numpy as np
import pytest
from PIL import Image

from regard.components.reporter import examples
from regard.components.reporter.examples import (
    GROUP_SIZE,
    attention_data,
    choose_groups,
    make_cards,
    score_rows,
    small_jpeg,
)
from regard.components.reporter.tables import format_share
from regard.models.metrics import Rows
from regard.serving import attention_heads, saved_model
from regard.serving.saved_model import Prediction
from tests import fake_models
from tests.components.reporter import sample_runs

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]


def test_groups_do_not_overlap_and_prefer_long_rows():
    scores = [5.0] * 10 + [1.0, 2.0] + [9.0] * 10
    lengths = list(range(22))
    groups = choose_groups(scores, lengths)
    assert groups["Worst"] == [10, 11, 9, 8, 7, 6]
    assert groups["Best"] == [21, 20, 19, 18, 17, 16]
    assert len(groups["Random sample"]) == GROUP_SIZE
    assert next(iter(groups)) == "Random sample"
    rows = [row for group in groups.values() for row in group]
    assert len(set(rows)) == len(rows)
    assert groups == choose_groups(scores, lengths)


def test_the_random_sample_begins_with_the_most_typical_row():
    scores = [float(score) for score in range(100)]
    sample = choose_groups(scores, [1] * 100)["Random sample"]
    assert sample == sorted(sample, key=lambda row: abs(row - 50))
    assert sample != sorted(sample)


def test_groups_of_few_rows():
    assert choose_groups([1.0, 0.0], [1, 1]) == {"Worst": [1, 0], "Best": [], "Random sample": []}


def test_texts_are_scored_by_chrf():
    rows = Rows(["the cat sat", "x"], [["the cat sat"], ["the cat sat"]])
    values, texts = score_rows(rows, ["exact_match", "bleu"], {})
    assert values[0] > values[1]
    assert texts[0] == "chrF 100.00"


def test_numbers_are_scored_by_their_error():
    rows = Rows([0.5, 0.9, math.nan], [[0.25], [0.9], [0.5]])
    values, texts = score_rows(rows, ["pearson"], {})
    assert values == [-0.25, 0.0, -math.inf]
    assert texts == ["error 0.25", "error 0", "undefined"]


def test_positions_are_scored_by_the_metric_of_the_run():
    rows = Rows([[0, 1, 2, 3], [0, 2, 1, 3]], [[[0, 1, 2, 3]]] * 2, {"points": [SQUARE] * 2})
    values, texts = score_rows(rows, ["tour_length"], {})
    assert values[0] == pytest.approx(-4.0)
    assert values[1] < values[0]
    assert texts[0] == "tour length 4.0000"
    assert score_rows(rows, [], {})[0] == [1.0, 0.0]


@pytest.mark.parametrize("metric", ["tour_length", "tour_ratio"])
def test_a_tour_that_omits_points_is_undefined(metric):
    rows = Rows([[0, 1], [0, 1, 2, 3]], [[[0, 1, 2, 3]]] * 2, {"points": [SQUARE] * 2})
    values, texts = score_rows(rows, [metric], {})
    assert values[0] == -math.inf
    assert texts[0].endswith("undefined")
    assert math.isfinite(values[1])


def test_a_large_split_is_sampled_evenly(facts, monkeypatch):
    monkeypatch.setattr(examples, "MAX_SCORED_ROWS", 8)
    lines = [int(card.location.removeprefix("test.tsv:")) for card in all_cards(facts)]
    assert sorted(lines) == list(range(1, 21, 3))


def all_cards(facts):
    return [card for cards in make_cards(facts).values() for card in cards]


def test_no_predictions(tmp_path):
    facts = sample_runs.number_run(tmp_path)
    (tmp_path / "predictions" / "candidate.parquet").unlink()
    assert make_cards(facts) == {}


def test_cards_of_texts(facts):
    groups = make_cards(facts)
    assert list(groups) == ["Random sample", "Worst", "Best"]
    card = groups["Worst"][0]
    assert card.location.startswith("test.tsv:")
    assert "chrF" in card.score
    line = int(card.location.removeprefix("test.tsv:"))
    # The log-probability of a row is its number, counted from 0; its output has two tokens.
    assert f"mean token probability {format_share(math.exp((1 - line) / 2))}" in card.score
    assert not card.is_correct
    assert any(differs and "MORE" in text for text, differs in card.output)
    assert card.attention["outputs"]["alignment"][0] == [0.8, 0.2, 0.0]
    assert groups["Best"][0].is_correct


def test_attention_maps_that_are_too_large_are_omitted(facts, monkeypatch):
    monkeypatch.setattr(examples, "_MAX_WEIGHTS", 5)
    assert all(card.attention is None for card in all_cards(facts))


def test_attention_that_is_not_finite_is_omitted():
    row = {"hypothesis": "x", "alignment": [[0.5, math.nan]], "source_pieces": ["a", "b"]}
    contract = fake_models.Reverser().contract()
    assert attention_data({**row, "target_pieces": ["x"]}, contract) is None


def test_long_texts_are_truncated(facts, monkeypatch):
    monkeypatch.setattr(examples, "_MAX_CHARACTERS", 6)
    texts = [entry.text for card in all_cards(facts) for entry in card.inputs]
    assert max(map(len, texts)) == 6
    assert texts[0].endswith("…")


def test_cards_of_images(tmp_path):
    cards = {card.inputs[0].text: card for card in all_cards(sample_runs.image_run(tmp_path))}
    missing, present = cards["images/2.png"], cards["images/0.png"]
    assert (missing.inputs[0].url, missing.attention) == (None, None)
    assert present.inputs[0].url.startswith("data:image/jpeg;base64,")
    assert present.attention is not None


def test_cards_of_points(tmp_path):
    card = make_cards(sample_runs.points_run(tmp_path))["Worst"][0]
    assert card.output == [("0 → 1 → 2", False)]
    assert card.reference == [("0 → 2 → 1", False)]
    assert card.attention["inputs"]["points"] == [[0.1, 0.2], [0.9, 0.4], [0.5, 0.8]]
    assert card.attention["outputs"]["order"] == [0, 1, 2]


def config(folder):
    return {"data": {"root": str(folder)}}


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "CMYK"])
def test_images_are_reduced(tmp_path, mode):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    Image.new(mode, (1200, 600)).save(tmp_path / "a", kind)
    with Image.open(io.BytesIO(small_jpeg("a", config(tmp_path)))) as image:
        assert image.size == (480, 240)


def test_invalid_images_are_omitted(tmp_path, monkeypatch):
    (tmp_path / "text").write_text("not an image")
    (tmp_path / "cut").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (tmp_path / "folder").mkdir()
    Image.new("1", (4000, 4000)).save(tmp_path / "huge", "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    for name in ("text", "cut", "folder", "missing", "huge"):
        assert small_jpeg(name, config(tmp_path)) is None


def test_the_first_card_of_a_group_has_all_heads(tmp_path, monkeypatch):
    facts = sample_runs.text_run(tmp_path)
    contract = fake_models.ManyHeaded().contract()
    facts.predictions["contract"] = contract
    facts = dataclasses.replace(facts, folders={**facts.folders, "model": tmp_path})
    facts.__dict__["predictions"] = {**facts.predictions, "contract": contract}
    requests = []

    class Model:
        def predict(self, name, rows):
            requests.extend(rows)
            outputs = {"cross_heads": np.ones((2, 3, 4, 4), np.float32), "source_length": 4}
            return [Prediction(outputs, contract)]

    Model.contract = contract
    serving = tmp_path / "Format-Serving"
    serving.mkdir()
    models = {str(serving): Model()}
    monkeypatch.setattr(saved_model, "load", lambda path, few_runs: models[str(path)])
    groups = make_cards(facts)
    assert len(requests) == len(groups) == 3
    for cards, request in zip(groups.values(), requests, strict=True):
        assert request == {
            "source": cards[0].inputs[0].text,
            "target": "".join(text for text, _ in cards[0].output),
        }
        assert np.shape(cards[0].attention["heads"]["cross_heads"]) == (2, 3, 4, 4)
        assert all("heads" not in card.attention for card in cards[1:])
    monkeypatch.setattr(attention_heads, "MAX_WEIGHTS", 10)
    assert all("heads" not in cards[0].attention for cards in make_cards(facts).values())
