"""Spans as CorpusGen writes them: rows, what is held out, what is told, and what TFX is told."""

from __future__ import annotations

import pytest

from components.corpus_gen.fingerprints import fingerprint
from components.corpus_gen.spans import settled
from components.errors import UserError
from tests.components.corpus_gen.corpora import TRANSLATION


def spans_of(out, split):
    return [record["span"].bytes_list.value[0].decode() for record in out.records(split)]


def write(folder, name, rows, start=0):
    (folder / name).parent.mkdir(exist_ok=True)
    lines = (f"sentence {i}\tSatz {i}\n" for i in range(start, start + rows))
    (folder / name).write_text("".join(lines))


def test_rows_know_their_span_and_some_of_the_newest_are_tested_on(tmp_path, generate):
    write(tmp_path, "1/train-1.tsv", 30)
    write(tmp_path, "2/train-1.tsv", 20, 100)
    write(tmp_path, "2/train-2.tsv", 40, 100)
    write(tmp_path, "test.tsv", 5, 200)
    out = generate(
        train="{SPAN}/train-{VERSION}.tsv",
        eval="test.tsv",
        test="test.tsv",
        spans={"test_share": 0.3},
    )
    held = spans_of(out, "test").count("2")
    assert 5 < held < 20
    assert spans_of(out, "test").count("fixed") == 5
    assert spans_of(out, "train") == ["1"] * 30 + ["2"] * (40 - held)
    assert set(spans_of(out, "eval")) == {"fixed"}
    trained = {row[0] for row in out.rows("train")}
    assert not trained & {row[0] for row in out.rows("test")}

    one, two = out.findings["spans"]
    assert (one["name"], one["version"], one["rows"]) == ("1", 1, {"train": 30})
    assert (two["span"], two["version"]) == (2, 2)
    assert two["rows"] == {"train": 40 - held, "test": held}
    assert two["files"] == {"train": [str(tmp_path / "2" / "train-2.tsv")]}
    assert len({one["fingerprint"], two["fingerprint"]}) == 2
    assert (out.artifact.span, out.artifact.version) == (2, 2)


def test_a_newest_span_that_is_too_small_to_be_tested_on_is_told(tmp_path, generate, monkeypatch):
    from components import events

    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    write(tmp_path, "1.tsv", 30)
    write(tmp_path, "2.tsv", 1)
    write(tmp_path, "test.tsv", 5)
    fixed = {"eval": "test.tsv", "test": "test.tsv"}
    generate(train="{SPAN}.tsv", **fixed, spans={"test_share": 0.01})
    (warning,) = (event["text"] for event, _ in events.read(tmp_path / "events.jsonl"))
    assert (
        warning
        == "span 2 is too small: data.spans.test_share: 0.01 takes none of its rows for test"
    )


def test_what_the_graph_has_not_settled_is_settled_and_told(tmp_path, generate, monkeypatch):
    from components import events

    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    for name in ("1.tsv", "2.tsv", "4.tsv", "test.tsv"):
        write(tmp_path, name, 3)
    section = {"train": "{SPAN}.tsv", "eval": "test.tsv", "test": "test.tsv"}
    data = settled({"root": str(tmp_path), "features": TRANSLATION, **section})
    out = generate(**section)
    assert [span["name"] for span in out.findings["spans"]] == ["1", "2", "4"]
    assert out.findings["fingerprint"] == fingerprint(data)
    (told,) = (event["text"] for event, _ in events.read(tmp_path / "events.jsonl"))
    assert told == "1 span is missing between 1 and 4: 3"
    generate("again", **data)  # by whoever has settled it, it was told then
    assert len(list(events.read(tmp_path / "events.jsonl"))) == 1


def test_a_run_chooses_its_spans(tmp_path, generate):
    for name in ("1.tsv", "2.tsv", "3.tsv", "test.tsv"):
        write(tmp_path, name, 3)
    section = {"train": "{SPAN}.tsv", "eval": "test.tsv", "test": "test.tsv"}
    section["spans"] = {"first": None, "last": 3, "window": 1}
    given = {"first_span": "", "last_span": "2", "span_window": 0}
    out = generate(parameters=given, **section)
    assert [span["name"] for span in out.findings["spans"]] == ["1", "2"]
    with pytest.raises(UserError, match="is after"):
        generate(parameters={"first_span": "3", "last_span": "2"}, **section)


def test_a_corpus_without_spans_has_no_such_feature(tmp_path, generate):
    write(tmp_path, "a.tsv", 3)
    out = generate(train="a.tsv", eval="a.tsv", test="a.tsv")
    assert all("span" not in record for record in out.records("train"))
    assert "spans" not in out.findings


def test_a_new_span_is_other_content_and_one_that_is_not_taken_is_not(tmp_path):
    write(tmp_path, "1.tsv", 3)
    write(tmp_path, "2.tsv", 3, 10)
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "{SPAN}.tsv"}
    first = fingerprint({**data, "spans": {"last": 1}})
    both = fingerprint(data)
    shared = fingerprint({**data, "spans": {"test_share": 0.1}})
    assert len({first, both, shared}) == 3
    before = settled({**data, "spans": {"first": 2}})
    write(tmp_path, "3.tsv", 3, 20)
    assert fingerprint(before) == fingerprint({**data, "spans": {"first": 2, "last": 2}})
    assert before == settled({**data, "spans": {"window": 1, "last": 2}})  # TFX's key, too
