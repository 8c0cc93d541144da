"""The table of a comparison."""

import pytest

from regard.pipeline.compare import table
from regard.pipeline.compare.results import ComparisonResults, ModelResult


def entry(label, bleu=None, **fields):
    result = {"label": label, "state": "finished", **fields}
    if bleu is not None:
        metric = {"name": "bleu", "label": "BLEU", "value": bleu, "signature": "nrefs:1|tok:13a"}
        metric["interval"] = {"low": bleu - 1, "high": bleu + 1, "samples": 1000}
        exact = {"name": "exact_match", "label": "exact match", "value": 0.5, "scale": 1.0}
        exact |= {"signature": ""}
        result |= {"metrics": {"bleu": metric, "exact_match": exact}, "test_rows": 1000}
        result |= {"parameters": 7042416, "training_seconds": 1911.4, "epochs": 14, "steps": 6748}
        result |= {"perplexity": 100.0 / bleu, "sentences_per_second": 101.04}
        result |= {"device": "CPU", "decode_batch_size": 64}
    return ModelResult.model_validate(result)


def results_of(*models):
    return ComparisonResults(name="m", models=models, best={"bleu": "b"})


@pytest.fixture
def content():
    return results_of(entry("a", 20.0), entry("b", 34.567), entry("c", state="waiting"))


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_markdown(content):
    text = table.markdown(content, "regard compare m.yaml")
    head, rule, *rows = rows_of(text)
    assert head == [
        "model", "parameters", "training, s", "epochs", "steps", "perplexity", "BLEU",
        "exact match", "sentences/s",
    ]  # fmt: skip
    assert rule == ["---", *["---:"] * 8]
    a, b, c = rows
    assert a[:7] == ["a", "7,042,416", "1,911", "14", "6,748", "5.00", "20.00 [19.00, 21.00]"]
    assert a[7:] == ["0.5000", "101.0"]
    assert b[5:8] == ["2.89", "**34.57 [33.57, 35.57]**", "0.5000"]
    assert c == ["c (waiting)", *["–"] * 8]
    assert "regard compare m.yaml" in text


def test_notes_have_each_fact_once(content):
    notes = table.notes(content.models)
    assert [note for note in notes if "tok:13a" in note] == ["BLEU: `nrefs:1|tok:13a`"]
    assert [note for note in notes if "sentences/s" in note] == [
        "sentences/s: the exported model on a CPU, batch size 64"
    ]
    assert any("the test split, 1,000 rows" in note for note in notes)


def test_a_baseline_with_the_name_of_the_best_model_is_not_bold():
    content = results_of(entry("a", 20.0)).model_copy(update={"baselines": [entry("b", 10.0)]})
    assert "**" not in table.markdown(content, "x")


def test_notes_warn_of_what_makes_a_comparison_unfair(content):
    assert not [note for note in table.notes(content.models) if "warning" in note]
    a = entry("a", 20.0, data="1", stop_reason="max_minutes: 75.0")
    b = entry("b", 21.0, data="2", stop_reason="max_epochs: 3")
    warnings = [note for note in table.notes([a, b]) if "warning" in note]
    assert len(warnings) == 2
    assert "different data" in warnings[0]
    assert "a stopped by max_minutes, which includes compilation" in warnings[1]


def test_table_without_results():
    models = [entry("a", state="waiting")]
    _, _, row = rows_of(table.markdown(results_of(*models), "x"))
    assert row == ["a (waiting)", *["–"] * 6]
    assert table.notes(models) == []


def test_summary_line(content):
    assert table.summary_line(content.models[0]) == (
        "BLEU 20.00 · exact match 0.5000 · perplexity 5.00 · trained in 31:51"
    )
