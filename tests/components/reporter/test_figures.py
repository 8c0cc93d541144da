import json

import pytest

from regard.components.common.matplotlib_style import style
from regard.components.common.run_record import RunRecord
from regard.components.reporter import figures, page
from regard.components.reporter.attention_statistics import measure_attention
from regard.components.reporter.run_facts import RunFacts
from tests.components.reporter import sample_runs


def draw(facts):
    with style(page.DRAWING_STYLE):
        sampled = figures.draw_figures(facts, measure_attention(facts))
    assert len({figure.name for figure in sampled}) == len(sampled)
    return {figure.name: figure for figure in sampled}


@pytest.fixture(scope="module")
def text_figures(tmp_path_factory):
    """The figures of a text-to-text run by name."""
    return draw(sample_runs.text_run(tmp_path_factory.mktemp("figures")))


def test_figures_of_a_text_run(text_figures):
    assert list(text_figures) == [
        "by-length",
        "loss",
        "perplexity",
        "learning-rate",
        "speed",
        "lengths-source",
        "entropy",
        "coverage",
    ]


def test_reliability_of_the_confidence(tmp_path):
    bins = [
        {"low": 0.0, "high": 0.1, "rows": 30, "probability": 0.05, "share": 0.1},
        {"low": 0.9, "high": 1.0, "rows": 10, "probability": 0.95, "share": 0.9},
    ]
    content = {"metric": "chrf", "label": "chrF", "good": 50.0, "rows": 40, "bins": bins}
    (tmp_path / "confidence.json").write_text(json.dumps(content))
    facts = RunFacts(RunRecord(), {"evaluation": tmp_path})
    (figure,) = figures.draw_figures(facts, None)
    assert (figure.name, figure.section) == ("reliability", "scores")
    assert figure.rows == [["0–10%", "30", "5%", "10%"], ["90–100%", "10", "95%", "90%"]]
    diagonal, marks = figure.figure.axes[0].lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert list(marks.get_ydata()) == [0.1, 0.9]


def test_curves_show_the_history(text_figures):
    loss = text_figures["loss"]
    train, evaluation = loss.figure.axes[0].lines
    assert list(train.get_xdata()) == [100, 200, 300, 400, 500, 600]
    assert list(train.get_ydata()) == pytest.approx([8, 4, 8 / 3, 2, 1.6, 8 / 6])
    assert evaluation.get_ydata()[0] == 9.0
    assert loss.rows[0] == ["100", "8.0000", "9.0000"]
    assert loss.tooltips["marks-train-loss"][1] == "step 200: train 4.0000"
    assert loss.figure.axes[0].get_yscale() == "log"
    assert loss.title == "Loss (eval, 8 rows), log scale"
    assert text_figures["speed"].figure.axes[0].get_yscale() == "linear"


@pytest.mark.parametrize(("limit", "rows"), [(None, 8), (5, 5), (20, 8)])
def test_titles_name_the_rows_of_an_evaluation(tmp_path, limit, rows):
    history = [{"step": 1, "loss": 2.0, "train_loss": 2.0, "bleu": 3.0}]
    training = {"history": history, "rows": {"eval": {"usable": 8}}}
    (tmp_path / "training.json").write_text(json.dumps(training))
    config = {"training": {"validation_rows": limit}}
    facts = RunFacts(RunRecord(), {"model_run": tmp_path}, config=config)
    titles = {figure.name: figure.title for figure in figures.draw_figures(facts, None)}
    assert titles == {"loss": "Loss (eval, 8 rows)", "bleu": f"BLEU (eval, {rows} rows)"}


def test_scores_by_length_of_this_model_and_production(text_figures):
    figure = text_figures["by-length"]
    candidate, production = figure.figure.axes[0].lines
    assert list(candidate.get_ydata()) == [44.0, 31.5]
    assert list(production.get_ydata()) == [39.0, 26.5]
    assert figure.rows == [
        ["up to 10", "10", "44.00", "39.00"],
        ["11+", "10", "31.50 [28.00, 35.00]", "26.50"],
    ]
    axes = figure.figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["up to 10\n10", "11+\n10"]
    assert axes.get_ylim()[0] == 0
    (interval,) = axes.collections
    assert interval.get_segments()[0].tolist() == [[1, 28.0], [1, 35.0]]
    assert figure.title == "BLEU by input length with 95% intervals"


def test_lengths_as_shares_of_each_split(text_figures):
    figure = text_figures["lengths-source"]
    (line,) = figure.figure.axes[0].lines
    assert list(line.get_ydata()) == [0.6, 0.4]
    assert figure.rows == [["6–10", "60"], ["11–20", "40"]]


def test_the_last_bar_of_a_histogram_includes_larger_values():
    figure = figures._draw_histogram("x", "X", "x", [0.1, 0.2, 7.0, 2.9], 3.0)
    heights = [bar.get_height() for bar in figure.figure.axes[0].patches]
    assert sum(heights) == pytest.approx(1.0)
    assert heights[-1] == 0.5
    assert figure.rows[-1] == ["over 2.85", "50%"]


def test_a_metric_of_the_eval_split_has_a_curve(facts, tmp_path):
    with sample_runs.edit(tmp_path, "model_run", "training.json") as content:
        for entry in content["history"]:
            entry["bleu"] = entry["step"] / 20
    assert draw(facts)["bleu"].title == "BLEU (eval, 8 rows)"


@pytest.mark.parametrize(
    ("name", "values", "maximum"),
    [
        ("exact_match", [1.0] * 6, 1.0),
        ("exact_match", [0.0, 0.5, 0.9, 1.0, 1.0, 1.0], 1.0),
        ("bleu", [97.0, 99.0, 100.0, 100.0, 100.0, 100.0], 100.0),
    ],
)
def test_the_axis_of_a_metric_has_no_label_above_its_maximum(
    name, values, maximum, facts, tmp_path
):
    with sample_runs.edit(tmp_path, "model_run", "training.json") as content:
        for entry, value in zip(content["history"], values, strict=True):
            entry[name] = value
    axes = draw(facts)[name].figure.axes[0]
    low, top = axes.get_ylim()
    assert low == 0
    assert min(values) <= maximum < top < maximum + 0.1 * (maximum - low)
    labelled = [tick for tick in axes.get_yticks() if low <= tick <= top]
    assert max(labelled) == pytest.approx(maximum)


def test_the_axis_of_a_metric_with_higher_values_is_not_cut(facts, tmp_path):
    with sample_runs.edit(tmp_path, "model_run", "training.json") as content:
        for entry in content["history"]:
            entry["tour_ratio"] = 1 + entry["step"]
    assert draw(facts)["tour_ratio"].figure.axes[0].get_ylim()[1] > 600


def test_a_missing_value_does_not_hide_the_curve(facts, tmp_path):
    with sample_runs.edit(tmp_path, "model_run", "training.json") as content:
        del content["history"][0]["train_loss"]  # right after a resume
    train, evaluation = draw(facts)["loss"].figure.axes[0].lines
    assert len(train.get_xdata()) == 5
    assert len(evaluation.get_xdata()) == 6


def test_an_empty_split_is_not_drawn(facts, tmp_path):
    with sample_runs.edit(tmp_path, "checks", "checks.json") as content:
        content["lengths"]["source"]["splits"]["test"] = [0, 0, 0, 0]
    assert len(draw(facts)["lengths-source"].figure.axes[0].lines) == 1


def test_the_table_of_a_long_training_is_sampled(facts, tmp_path):
    with sample_runs.edit(tmp_path, "model_run", "training.json") as content:
        entry = content["history"][0]
        content["history"] = [{**entry, "step": n} for n in range(1, 1001)]
    rows = draw(facts)["loss"].rows
    assert len(rows) == 40
    assert rows[-1][0] == "1,000"


def test_figures_without_data_are_omitted(facts, tmp_path):
    for name in ("training", "metrics", "by_length", "checks"):
        for path in tmp_path.rglob(f"{name}.json"):
            path.unlink()
    assert list(draw(facts)) == ["entropy", "coverage"]
