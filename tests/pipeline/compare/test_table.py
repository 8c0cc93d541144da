from __future__ import annotations

import io

import pytest
from rich.console import Console

from pipeline.compare import table


def entry(label, bleu=None, **fields):
    made = {"label": label, "state": "finished", "pipeline": f"m-{label}", **fields}
    if bleu is not None:
        metric = {"name": "bleu", "label": "BLEU", "value": bleu, "signature": "nrefs:1|tok:13a"}
        exact = {"name": "exact_match", "label": "exact match", "value": 0.5, "scale": 1.0}
        made |= {"metrics": {"bleu": metric, "exact_match": exact}, "test_rows": 1000}
        made |= {"parameters": 7042416, "training_seconds": 1911.4, "epochs": 14, "steps": 6748}
        made |= {"perplexity": 100.0 / bleu, "sentences_per_second": 101.04}
        made |= {"device": "CPU", "decode_batch_size": 64, "side_by_side": 1}
    return made


@pytest.fixture
def content():
    waiting = entry("c") | {"state": "waiting"}
    return {"name": "m", "models": [entry("a", 20.0), entry("b", 34.567), waiting]}


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
    assert a == ["a", "7,042,416", "1,911", "14", "6,748", "5.00", "20.00", "**0.5000**", "101.0"]
    assert b[5:8] == ["**2.89**", "**34.57**", "**0.5000**"]  # equals are both the best
    assert c == ["c (waiting)", *["–"] * 8]
    assert "regard compare m.yaml" in text


def test_a_signature_and_a_condition_are_told_once(content):
    notes = table.notes(content["models"])
    assert [note for note in notes if "tok:13a" in note] == ["BLEU: `nrefs:1|tok:13a`"]
    assert [note for note in notes if "sentences/s" in note] == [
        "sentences/s: with the exported model on a CPU, batches of 64"
    ]
    assert any("the test split, 1,000 rows" in note for note in notes)
    assert not any("shared the machine" in note for note in notes)


def test_speeds_that_were_shared_are_told(content):
    content["models"][1]["side_by_side"] = 2
    assert "2 models shared the machine: b" in table.notes(content["models"])


@pytest.mark.parametrize(
    ("key", "told"),
    [("tokenizer", "the tokenizers differ"), ("references", "the test splits differ")],
)
def test_what_cannot_be_compared_is_told_first(content, key, told):
    models = content["models"]
    models[2] |= entry("c", 25.0)
    for model, digest in zip(models, "xyx", strict=True):
        model[key] = digest
    assert table.notes(models)[0] == f"not comparable: {told}: a, c | b"
    models[1][key] = "x"
    assert not any("comparable" in note for note in table.notes(models))


def test_the_best_needs_a_rival():
    _, _, row = rows_of(table.markdown({"name": "m", "models": [entry("a", 20.0)]}, "x"))
    assert not any("*" in cell for cell in row)


def test_nothing_yet_is_a_table_without_notes():
    models = [entry("a") | {"state": "waiting"}]
    _, _, row = rows_of(table.markdown({"name": "m", "models": models}, "x"))
    assert row == ["a (waiting)", *["–"] * 6]
    assert table.notes(models) == []


def test_the_terminal_shows_the_same_without_stars_and_cuts_nothing(content):
    console = Console(file=io.StringIO(), width=20)
    for line in table.lines(content):
        console.print(line, soft_wrap=True)
    lines = console.file.getvalue().splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split("  ")[-2:] == ["exact match", "sentences/s"]
    assert lines[2].split()[:3] == ["b", "7,042,416", "1,911"]
    assert lines[2].split()[5:] == ["2.89", "34.57", "0.5000", "101.0"]
    assert "*" not in console.file.getvalue()


def test_status(content):
    content["models"].append({"label": "long", "state": "failed", "detail": "Trainer: no"})
    assert table.status_lines(content) == [
        "a     finished     BLEU 20.00 · exact match 0.5000 · perplexity 5.00 · trained in 31:51",
        "b     finished     BLEU 34.57 · exact match 0.5000 · perplexity 2.89 · trained in 31:51",
        "c     waiting",
        "long  failed       Trainer: no",
    ]
