"""The plots of a comparison."""

import subprocess
import sys

import pytest

from regard.components.evaluator.results import LengthBucket
from regard.pipeline.compare import plots
from regard.pipeline.compare.results import ComparisonResults, ModelResult

LUONG = [f"luong-{score}-{feed}" for score in "abcd" for feed in ("feed", "nofeed")]
PAPERS = ["none", "bahdanau", *LUONG, "local-m", "local-p", "transformer"]


def entry(label, bleu, metric="bleu", scale=100.0, **fields):
    facts = {"name": metric, "label": metric, "value": bleu, "scale": scale, "signature": ""}
    buckets = [
        {"low": 0, "high": 10, "rows": 700, "scores": {"candidate": {metric: bleu + 1}}},
        {"low": 21, "high": None, "rows": 20, "scores": {"candidate": {metric: bleu - 1}}},
    ]
    history = [
        {"step": 10 * n, "epoch": n, "seconds": 60.0 * n, "perplexity": 90.0 / n + bleu}
        for n in range(1, 21)
    ]
    result = {"label": label, "state": "finished", "metrics": {metric: facts}, "history": history}
    result |= {"by_length": buckets, "length_unit": "source tokens"} | fields
    return ModelResult.model_validate(result)


@pytest.mark.parametrize("labels", [PAPERS, [f"m-{i}" for i in range(20)], list("abcdefghijkl")])
def test_line_styles_are_distinct(labels):
    styles = plots.line_styles(labels)
    assert set(styles) == set(labels)
    assert len(set(map(str, styles.values()))) == len(labels)


def lines_of(axes):
    return {
        line.get_label(): [list(line.get_xdata()), list(line.get_ydata())] for line in axes.lines
    }


def test_score_by_length():
    models = [entry("a", 20.0), entry("b", 30.0), ModelResult(label="c", state="waiting")]
    bucket = {"low": 11, "high": 20, "rows": 3, "scores": {"candidate": {"bleu": 5.0}}}
    models[0].by_length.insert(1, LengthBucket(**bucket))
    figure = plots.score_by_length(models, "bleu", plots.line_styles("abc"), "m")
    (axes,) = figure.axes
    lines = {"30.0  b": [[0, 2], [31.0, 29.0]], "20.0  a": [[0, 1, 2], [21.0, 5.0, 19.0]]}
    assert lines_of(axes) == lines
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks == ["up to 10\nn = 700", "11–20\nn = 3", "21 or more\nn = 20"]
    assert axes.get_ylabel() == "bleu"
    assert "source tokens" in axes.get_xlabel()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(lines)


def test_legend_of_a_metric_where_lower_is_better():
    models = [entry("a", 0.2), entry("b", 0.3)]
    for model in models:
        changes = {"higher_is_better": False, "scale": 1.0}
        model.metrics["bleu"] = model.metrics["bleu"].model_copy(update=changes)
    figure = plots.score_by_length(models, "bleu", plots.line_styles("ab"), "m")
    assert list(lines_of(figure.axes[0])) == ["0.200  a", "0.300  b"]


def test_learning_curves_by_step_and_by_time():
    figure = plots.learning_curves([entry("a", 5.0), entry("b", 4.0)], plots.line_styles("ab"), "m")
    left, right = figure.axes
    assert [line.get_xdata()[-1] for line in left.lines] == [200, 200]
    assert [line.get_xdata()[-1] for line in right.lines] == [20.0, 20.0]
    assert left.get_yscale() == "log"
    assert list(lines_of(right)) == ["8.50  b", "9.50  a"]
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["training steps", "training time, minutes"]


def files_of(folder, models):
    plots.write_plots(ComparisonResults(name="m", models=models), folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_files_are_reproducible(tmp_path):
    models = [entry(label, 20.0 + i) for i, label in enumerate(PAPERS)]
    files = files_of(tmp_path / "x", models)
    assert list(files) == ["bleu-by-length.svg", "learning-curves.svg"]
    assert all(b"<svg" in content for content in files.values())
    assert files_of(tmp_path / "x", models) == files


@pytest.mark.parametrize(
    ("models", "names"),
    [
        ([ModelResult(label="a", state="waiting")], []),
        ([entry("a", 0.5, "exact_match", 1.0)], ["exact-match-by-length", "learning-curves"]),
        ([entry("a", 20.0, history=[])], ["bleu-by-length"]),
        ([entry("a", 20.0, by_length=[])], ["learning-curves"]),
    ],
)
def test_plots_without_figures_are_omitted(tmp_path, models, names):
    assert list(files_of(tmp_path, models)) == [f"{name}.svg" for name in names]


def test_pyplot_is_not_imported(tmp_path):
    code = (
        "import sys; from pathlib import Path; from regard.pipeline.compare import plots, results\n"
        "assert 'matplotlib' not in sys.modules\n"
        "content = results.ComparisonResults.model_validate_json(sys.argv[1])\n"
        "plots.write_plots(content, Path(sys.argv[2]))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    text = ComparisonResults(name="m", models=[entry("a", 20.0)]).model_dump_json()
    subprocess.run([sys.executable, "-c", code, text, str(tmp_path)], check=True)
