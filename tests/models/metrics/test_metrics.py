import subprocess
import sys

import pytest

from regard.core import kinds
from regard.models import metrics
from regard.models.metrics import METRICS, GoldAlignment, MetricOptions, Rows

TEXT = ["bleu", "chrf", "exact_match", "bleu_lc", "bleu_1", "bleu_2", "bleu_3", "bleu_4", "ter"]
ROUGE = ["rouge_1", "rouge_2", "rouge_l"]
POINTS = ["hull_accuracy", "hull_area", "tour_length", "tour_ratio", "valid_tours"]
# The best tour length depends on the points.
BOUNDED = [name for name in METRICS if not name.startswith("tour_")]


def test_values_and_signatures_in_order():
    rows = Rows(
        ["A man rides .", "zwei", "The end."], [["A man is riding."], ["Zwei"], ["The end."]]
    )
    exact, bleu, chrf = metrics.compute(["exact_match", "bleu", "chrf"], rows)
    assert exact.value == pytest.approx(1 / 3)
    assert (exact.label, exact.scale, exact.signature) == (
        "exact match",
        1.0,
        "nrefs:1|case:mixed|norm:strip",
    )
    assert 0 < bleu.value < 100
    assert bleu.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert chrf.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|")
    assert bleu.higher_is_better
    assert bleu.is_defined


@pytest.mark.parametrize(
    ("names", "tokenize", "hypotheses", "message"),
    [
        (["blue"], "13a", ["a"], "Did you mean bleu.*Choices: bleu, bleu_1, .* and 13 more"),
        (["bleu"], "14a", ["a"], "unknown tokenizer '14a'.*13a"),
        (["bleu"], "13a", ["a", "b"], "2 hypotheses but 1 references"),
        (["mse"], "13a", ["a"], "mse scores outputs of kind number, but .* of kind text"),
        (["bleu"], "13a", [0.5], r"of kind number \(choices: exact_match, pearson, spearman, mse"),
        (["ter"], "13a", [[0, 1]], r"of kind positions \(choices: exact_match, hull_accuracy,"),
    ],
)
def test_invalid_names_and_options_are_errors(names, tokenize, hypotheses, message):
    with pytest.raises(ValueError, match=message):
        metrics.compute(names, Rows(hypotheses, [["a"]]), MetricOptions(tokenize=tokenize))


def test_empty_rows_and_missing_references_are_errors():
    with pytest.raises(ValueError, match="no hypotheses"):
        metrics.compute(["bleu"], Rows([], []))
    with pytest.raises(ValueError, match="row 1 has no reference"):
        metrics.compute(["bleu"], Rows(["a", "b"], [["a"], []]))


def test_metrics_for_each_output_kind():
    assert metrics.metrics_for(kinds.TEXT) == [
        *(*TEXT, *ROUGE, "perplexity", "pointing", "aer"),
        *("squad_exact_match", "squad_f1", "supporting_attention"),
    ]
    assert metrics.metrics_for(kinds.NUMBER) == ["exact_match", "pearson", "spearman", "mse"]
    assert metrics.metrics_for(kinds.POSITIONS) == ["exact_match", *POINTS]


@pytest.mark.parametrize("name", BOUNDED)
def test_perfect_outputs_have_the_best_value(name):
    spec = METRICS[name]
    texts = ["the cat sat on the mat", "a second line of some length"]
    outputs = {"number": [1.0, 2.5], "positions": [[0, 1, 2], [0, 2, 1]]}.get(
        spec.output_kind, texts
    )
    points = [[[0, 0], [1, 0], [0, 1]]] * 2
    attention = {
        "pieces": [["▁the", "▁cat"]] * 2,
        "alignment": [[[[1.0]], [[1.0]]]] * 2,
        "boxes": ['[{"phrase": "cat", "box": [0, 0, 1, 1]}]'] * 2,
    }
    if name == "supporting_attention":
        attention = {"alignment": [[[0.0, 1.0]]] * 2, "passage_begins": [[0, 4]] * 2}
        attention["supporting"] = [[4, 7]] * 2
    aligned = {
        "forced_alignment": [[[1.0]]] * 2,
        "forced_source_pieces": [["▁a"]] * 2,
        "forced_target_pieces": [["▁b"]] * 2,
        "gold": ["0-0"] * 2,
        "forced_score": [0.0] * 2,
        "forced_length": [7] * 2,
    }
    rows = Rows(outputs, [[one] for one in outputs], {"points": points, **attention, **aligned})
    (metric,) = metrics.compute(
        [name], rows, MetricOptions(alignment=GoldAlignment("gold", "word"))
    )
    assert metric.value == pytest.approx(spec.high if spec.higher_is_better else spec.low)
    assert metric.to_dict()["scale"] == spec.scale
    assert metric.signature


def test_take_selects_rows():
    rows = Rows(["a", "b", "c"], [["A"], ["B"], ["C"]], {"source": [1, 2, 3]})
    assert rows.take([2, 0]) == Rows(["c", "a"], [["C"], ["A"]], {"source": [3, 1]})


def test_importing_metrics_imports_no_library():
    libraries = ("sacrebleu", "rouge_score", "scipy", "numpy", "regex")
    code = f"import sys, regard.models.metrics; print([n for n in {libraries} if n in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert process.stdout.strip() == "[]"
