from __future__ import annotations

import json

import pytest

from components.pictures import style
from components.reporter import attention, figures, page
from tests.components.reporter import runs


def drawn(facts):
    with style(page.DRAWING):
        found = figures.draw(facts, attention.measure(facts))
    assert len({picture.name for picture in found}) == len(found)
    return {picture.name: picture for picture in found}


def test_what_is_drawn_of_a_run_of_texts(facts):
    assert list(drawn(facts)) == [
        *("by-length", "loss", "perplexity", "learning-rate", "speed"),
        *("lengths-source", "entropy", "coverage"),
    ]


def test_the_lines_are_what_was_measured(facts):
    loss = drawn(facts)["loss"]
    train, held_out = loss.figure.axes[0].lines
    assert list(train.get_xdata()) == [100, 200, 300, 400, 500, 600]
    assert list(train.get_ydata()) == pytest.approx([8, 4, 8 / 3, 2, 1.6, 8 / 6])
    assert held_out.get_ydata()[0] == 9.0
    assert loss.rows[0] == ["100", "8.0000", "9.0000"]
    assert loss.told["marks-train-loss"][1] == "step 200: train 4.0000"
    assert loss.figure.axes[0].get_yscale() == "log"
    assert drawn(facts)["speed"].figure.axes[0].get_yscale() == "linear"


def test_scores_by_length_stand_beside_those_of_production(facts):
    picture = drawn(facts)["by-length"]
    ours, theirs = picture.figure.axes[0].lines
    assert list(ours.get_ydata()) == [44.0, 31.5]
    assert list(theirs.get_ydata()) == [39.0, 26.5]
    assert picture.rows == [
        ["up to 10", "10", "44.00", "39.00"],
        ["11 or more", "10", "31.50", "26.50"],
    ]


def test_lengths_are_shares_of_each_split(facts):
    picture = drawn(facts)["lengths-source"]
    (line,) = picture.figure.axes[0].lines
    assert list(line.get_ydata()) == [0.6, 0.4]
    assert picture.rows == [["6–10", "60"], ["11–20", "40"]]


def test_what_lies_over_the_axis_is_in_the_last_bar():
    picture = figures._histogram("x", "X", "x", [0.1, 0.2, 7.0, 2.9], 3.0)
    heights = [bar.get_height() for bar in picture.figure.axes[0].patches]
    assert sum(heights) == pytest.approx(1.0)
    assert heights[-1] == 0.5
    assert picture.rows[-1] == ["over 2.85", "50%"]


def test_a_metric_of_the_answers_while_training_has_a_curve(facts, tmp_path):
    content = json.loads((tmp_path / "model_run" / "training.json").read_text())
    for entry in content["history"]:
        entry["bleu"] = entry["step"] / 20
    runs.put(tmp_path, "model_run", "training.json", content)
    assert drawn(facts)["bleu"].title == "BLEU, eval split"


def test_one_evaluation_without_a_measure_hides_no_curve(facts, tmp_path):
    content = json.loads((tmp_path / "model_run" / "training.json").read_text())
    del content["history"][0]["train_loss"]  # nothing was seen since the training went on
    runs.put(tmp_path, "model_run", "training.json", content)
    train, held_out = drawn(facts)["loss"].figure.axes[0].lines
    assert len(train.get_xdata()) == 5
    assert len(held_out.get_xdata()) == 6


def test_a_split_without_rows_is_not_drawn(facts, tmp_path):
    content = json.loads((tmp_path / "checks" / "checks.json").read_text())
    content["lengths"]["source"]["splits"]["test"] = [0, 0, 0, 0]
    runs.put(tmp_path, "checks", "checks.json", content)
    assert len(drawn(facts)["lengths-source"].figure.axes[0].lines) == 1


def test_a_long_training_has_a_short_table_with_its_end(facts, tmp_path):
    content = json.loads((tmp_path / "model_run" / "training.json").read_text())
    entry = content["history"][0]
    content["history"] = [{**entry, "step": n} for n in range(1, 1001)]
    runs.put(tmp_path, "model_run", "training.json", content)
    rows = drawn(facts)["loss"].rows
    assert len(rows) == 40
    assert rows[-1][0] == "1,000"


def test_a_run_that_has_only_begun_has_no_pictures(facts, tmp_path):
    for name in ("training", "metrics", "by_length", "checks"):
        for path in tmp_path.rglob(f"{name}.json"):
            path.unlink()
    assert list(drawn(facts)) == ["entropy", "coverage"]
