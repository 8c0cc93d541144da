"""Spans in CorpusGen's outputs: rows, test rows of the newest span, and cache keys."""

import pytest

from regard.components.data.fingerprints import fingerprint
from regard.core.errors import UserError
from tests.components.corpora import resolved


def spans_of(out, split):
    return [record["span"].bytes_list.value[0].decode() for record in out.records(split)]


def write(folder, name, rows, start=0):
    (folder / name).parent.mkdir(exist_ok=True)
    lines = (f"sentence {i}\tSatz {i}\n" for i in range(start, start + rows))
    (folder / name).write_text("".join(lines))


def test_rows_have_their_span_and_some_of_the_newest_are_test_rows(tmp_path, generate):
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
    test_rows = spans_of(out, "test").count("2")
    assert 5 < test_rows < 20
    assert spans_of(out, "test").count("fixed") == 5
    assert spans_of(out, "train") == ["1"] * 30 + ["2"] * (40 - test_rows)
    assert set(spans_of(out, "eval")) == {"fixed"}
    trained = {row[0] for row in out.rows("train")}
    assert not trained & {row[0] for row in out.rows("test")}

    one, two = out.findings["spans"]
    assert (one["name"], one["version"], one["rows"]) == ("1", 1, {"train": 30})
    assert (two["span"], two["version"]) == (2, 2)
    assert two["rows"] == {"train": 40 - test_rows, "test": test_rows}
    assert two["files"] == {"train": [str(tmp_path / "2" / "train-2.tsv")]}
    assert len({one["fingerprint"], two["fingerprint"]}) == 2
    assert (out.artifact.span, out.artifact.version) == (2, 2)


def test_node_resolves_unresolved_spans(tmp_path, generate, run_corpus, monkeypatch):
    from regard.core import events

    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    for name in ("1.tsv", "2.tsv", "4.tsv", "test.tsv"):
        write(tmp_path, name, 3)
    files = {"train": "{SPAN}.tsv", "eval": "test.tsv", "test": "test.tsv"}
    section = {**files, "spans": {"exclude": [3]}}
    corpus = resolved(tmp_path, **section)
    out = generate(**section)
    assert [span["name"] for span in out.findings["spans"]] == ["1", "2", "4"]
    assert out.findings["fingerprint"] == fingerprint(corpus)
    note = "data.spans.exclude: span 3 does not exist"

    def notes():
        return [event["text"] for event, _ in events.read(tmp_path / "events.jsonl")]

    assert notes().count(note) == 1
    run_corpus(corpus, "again")  # whoever resolves spans reports the notes
    assert notes().count(note) == 1


def test_run_parameters_select_spans(tmp_path, generate):
    for name in ("1.tsv", "2.tsv", "3.tsv", "test.tsv"):
        write(tmp_path, name, 3)
    section = {"train": "{SPAN}.tsv", "eval": "test.tsv", "test": "test.tsv"}
    section["spans"] = {"first": None, "last": 3, "window": 1}
    parameters = {"first_span": "", "last_span": "2", "span_window": 0}
    out = generate(parameters=parameters, **section)
    assert [span["name"] for span in out.findings["spans"]] == ["1", "2"]
    with pytest.raises(UserError, match="is after"):
        generate(parameters={"first_span": "3", "last_span": "2"}, **section)


def test_fingerprint_depends_on_the_selected_spans(tmp_path):
    write(tmp_path, "1.tsv", 3)
    write(tmp_path, "2.tsv", 3, 10)

    def key(**spans):
        return fingerprint(resolved(tmp_path, train="{SPAN}.tsv", spans=spans))

    assert len({key(last=1), key(), key(test_share=0.1)}) == 3
    before = resolved(tmp_path, train="{SPAN}.tsv", spans={"first": 2})
    write(tmp_path, "3.tsv", 3, 20)
    assert fingerprint(before) == key(first=2, last=2)
    # TFX's cache key is the same too.
    assert before == resolved(tmp_path, train="{SPAN}.tsv", spans={"window": 1, "last": 2})
