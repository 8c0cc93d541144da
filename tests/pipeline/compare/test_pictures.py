from __future__ import annotations

import itertools
import json
import subprocess
import sys

import pytest

from pipeline.compare import pictures

LUONG = [f"luong-{score}-{feed}" for score in "abcd" for feed in ("feed", "nofeed")]
PAPERS = ["none", "bahdanau", *LUONG, "local-m", "local-p", "transformer"]


def entry(label, bleu, metric="bleu", scale=100.0, **fields):
    facts = {"name": metric, "label": metric, "value": bleu, "scale": scale}
    buckets = [
        {"from": 0, "to": 10, "rows": 700, "candidate": {metric: bleu + 1}},
        {"from": 21, "to": None, "rows": 20, "candidate": {metric: bleu - 1}},
    ]
    history = [
        {"step": 10 * n, "epoch": n, "seconds": 60.0 * n, "perplexity": 90.0 / n + bleu}
        for n in range(1, 21)
    ]
    made = {"label": label, "state": "finished", "metrics": {metric: facts}, "history": history}
    return made | {"by_length": buckets, "length_unit": "source pieces"} | fields


@pytest.mark.parametrize("labels", [PAPERS, [f"m-{i}" for i in range(20)], list("abcdefghijkl")])
def test_no_two_models_look_alike(labels):
    looks = pictures.looks_of(labels)
    assert set(looks) == set(labels)
    for one, other in itertools.combinations(labels, 2):
        assert looks[one] != looks[other]
        # Colour is not the only thing that tells two of one colour apart.
        assert looks[one][0] != looks[other][0] or looks[one][1:] != looks[other][1:]


def test_variants_of_one_thing_share_a_colour():
    looks = pictures.looks_of(PAPERS)
    assert looks["luong-a-feed"][0] == looks["luong-a-nofeed"][0]
    assert looks["luong-a-feed"][1] != looks["luong-a-nofeed"][1]
    assert len({look[0] for look in looks.values()}) == len(pictures.COLOURS)


def lines_of(axes):
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines
    }


def test_by_length_has_a_line_a_model_and_a_place_a_bucket():
    models = [entry("a", 20.0), entry("b", 30.0), {"label": "c", "state": "waiting"}]
    models[0]["by_length"].insert(1, {"from": 11, "to": 20, "rows": 3, "candidate": {"bleu": 5.0}})
    figure = pictures.by_length(models, "bleu", pictures.looks_of("abc"), "m")
    (axes,) = figure.axes
    assert lines_of(axes) == {
        "30.0  b": ([0, 2], [31.0, 29.0]),
        "20.0  a": ([0, 1, 2], [21.0, 5.0, 19.0]),
    }
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks == ["up to 10\nn = 700", "11–20\nn = 3", "21 or more\nn = 20"]
    assert axes.get_ylabel() == "bleu"
    assert "source pieces" in axes.get_xlabel()
    legend = axes.get_legend()  # in the order of the results, beside the lines
    assert [text.get_text() for text in legend.get_texts()] == ["30.0  b", "20.0  a"]


def test_a_metric_whose_low_values_are_good_is_listed_from_below():
    models = [entry("a", 0.2), entry("b", 0.3)]
    for model in models:
        model["metrics"]["bleu"] |= {"higher_is_better": False, "scale": 1.0}
    figure = pictures.by_length(models, "bleu", pictures.looks_of("ab"), "m")
    assert list(lines_of(figure.axes[0])) == ["0.200  a", "0.300  b"]


def test_curves_are_drawn_over_steps_and_over_minutes():
    figure = pictures.curves([entry("a", 5.0), entry("b", 4.0)], pictures.looks_of("ab"), "m")
    left, right = figure.axes
    assert [line.get_xdata()[-1] for line in left.lines] == [200, 200]
    assert [line.get_xdata()[-1] for line in right.lines] == [20.0, 20.0]
    assert left.get_yscale() == "log"
    assert list(lines_of(right)) == ["8.50  b", "9.50  a"]
    assert [axes.get_xlabel() for axes in figure.axes] == ["training, steps", "training, minutes"]


def test_files_are_whole_and_the_same_for_the_same_figures(tmp_path):
    content = {"name": "m", "models": [entry(label, 20.0 + i) for i, label in enumerate(PAPERS)]}
    files = pictures.draw(content, tmp_path / "x")
    assert [file.name for file in files] == [
        "bleu-by-length.svg", "bleu-by-length.png", "learning-curves.svg", "learning-curves.png",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == sorted(f.name for f in files)
    before = [file.read_bytes() for file in files]
    assert before[1].startswith(b"\x89PNG")
    assert b"<svg" in before[0]
    assert [file.read_bytes() for file in pictures.draw(content, tmp_path / "x")] == before


@pytest.mark.parametrize(
    ("models", "names"),
    [
        ([{"label": "a", "state": "waiting"}], []),
        (
            [entry("a", 0.5, "exact_match", 1.0)],
            ["exact-match-by-length", "learning-curves"],
        ),
        ([entry("a", 20.0, history=[])], ["bleu-by-length"]),
        ([entry("a", 20.0, by_length=[])], ["learning-curves"]),
    ],
)
def test_what_is_not_known_is_not_drawn(tmp_path, models, names):
    files = pictures.draw({"name": "m", "models": models}, tmp_path)
    assert [file.stem for file in files if file.suffix == ".svg"] == names


def test_pyplot_and_its_global_figures_are_not_used(tmp_path):
    code = (
        "import sys, json; from pathlib import Path; from pipeline.compare import pictures\n"
        "assert 'matplotlib' not in sys.modules\n"
        "pictures.draw({'name': 'm', 'models': [json.loads(sys.argv[1])]}, Path(sys.argv[2]))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    text = json.dumps(entry("a", 20.0))
    subprocess.run([sys.executable, "-c", code, text, str(tmp_path)], check=True)


def test_what_can_no_longer_be_drawn_goes(tmp_path):
    models = [entry("a", 30.0), entry("b", 31.0)]
    pictures.draw({"name": "m", "models": models}, tmp_path)
    assert len(list(tmp_path.glob("*.svg"))) == 2
    waiting = [{"label": "a", "state": "waiting"}, {"label": "b", "state": "waiting"}]
    assert pictures.draw({"name": "m", "models": waiting}, tmp_path) == []
    assert list(tmp_path.iterdir()) == []
