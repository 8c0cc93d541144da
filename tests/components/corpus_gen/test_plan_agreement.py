"""``regard validate`` and CorpusGen accept the same corpora, and report the same."""

import gzip

import pytest

from regard.components.data.corpus_plan import CorpusPlan, survey_corpus
from regard.components.data.spans import resolve_spans
from regard.core.errors import UserError
from regard.core.owned_folders import SCRATCH, mark_name
from tests.components.corpora import CAPTIONED, corpus_of, picture, write_files

ROWS = "".join(f"word {i}\tWORD {i}\n" for i in range(200))
JSON = "".join(f'{{"source": "word {i}", "target": "WORD {i}"}}\n' for i in range(200))
SPLITS = {"eval": "good.tsv", "test": "good.tsv"}


def survey(corpus):
    notes = []
    summary = survey_corpus(CorpusPlan(resolve_spans(corpus, notes)))
    return summary, notes + summary.notes


VALID = {
    "dates that are not consecutive, and JSON lines": (
        dict.fromkeys(("2026-11-17.jsonl", "2026-11-19.jsonl", "2026-11-20.jsonl"), JSON),
        {"train": "{YYYY}-{MM}-{DD}.jsonl", "spans": {"test_share": 0.2}},
    ),
    "a table with a header, and a hashed split": (
        {"a.csv": "tgt,src\n" + ROWS.replace("\t", ",")},
        {"train": "a.csv", "split": {"seed": 3}},
    ),
    "gzip, separate splits, skipped rows and lines": (
        {"a.tsv.gz": gzip.compress(ROWS.encode() + b"one\n\xff\tB\n")},
        {"train": "a.tsv.gz", **SPLITS, "bad_rows": "skip"},
    ),
    "replayed spans": (
        {f"{n}.tsv": "".join(f"w {n} {i}\tW {i}\n" for i in range(200)) for n in (1, 2, 3)},
        {"train": ["good.tsv", "{SPAN}.tsv"], "spans": {"window": 1, "replay": 0.3}},
    ),
    "dropped and repaired rows": (
        {
            f"{n}.tsv": "".join(f"w {i % 30} {n}\tW {i} {n}\n" for i in range(60 * n, 60 * n + 60))
            + f" \tempty\nTom!\tTom!\nschÃ¶n {n}\tnice {n}\nw 1 2\tagain\n" * 2
            for n in (1, 2, 3)
        },
        {
            "train": "{SPAN}.tsv",
            "spans": {"window": 2, "replay": 0.3, "test_share": 0.2},
            "bad_rows_limit": 0.5,
            "checks": {
                **{n: {"action": "drop"} for n in ("empty_side", "same_sides", "duplicates")},
                "near_overlap": {"action": "drop", "similarity": 0.5},
                "encoding": {"action": "repair"},
            },
        },
    ),
    "too few older rows": (
        {"1.tsv": "a\tb\n", "2.tsv": ROWS},
        {"train": "{SPAN}.tsv", **SPLITS, "spans": {"window": 1, "replay": 0.5}},
    ),
    "too small a span to test on": (
        {"1.tsv": ROWS, "2.tsv": "a\tb\n"},
        {"train": "{SPAN}.tsv", **SPLITS, "spans": {"test_share": 0.01}},
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_valid_corpora(tmp_path, run_corpus, monkeypatch, name):
    from regard.core import events

    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    files, section = VALID[name]
    write_files(tmp_path, {"good.tsv": ROWS, **files})
    corpus = corpus_of(tmp_path, **section)
    summary, notes = survey(corpus)
    out = run_corpus(corpus)
    assert out.findings["rows"] == summary.rows
    assert out.findings["skipped"] == summary.problems.skipped_rows
    problems = {reason: entry["count"] for reason, entry in out.findings["problems"].items()}
    changes = summary.problems.changes
    problems.pop("row/skipped", None)
    assert problems == {change: rows.skipped_rows for change, rows in changes.items()}
    assert len(problems) == (5 if name == "dropped and repaired rows" else 0)
    spans = out.findings.get("spans", [])
    assert all(span.pop("fingerprint") for span in spans)
    assert spans == [span.to_json() for span in summary.spans]
    recorded = [event for event, _ in events.read(tmp_path / "events.jsonl")]
    assert [e["text"] for e in recorded if e["kind"] == "warning"] == notes
    formats = ["a.csv: comma-separated, header: tgt, src"] * ("a.csv" in files)
    assert list(summary.problems.format_notes()) == formats
    (first_row,) = summary.problems.first_row_notes()
    assert first_row.startswith("first row, ")
    (first,) = out.findings["first_rows"]
    assert first["values"].keys() == first["columns"].keys() == {"source", "target"}
    if "a.csv" in files:
        assert first["columns"] == {"source": "src", "target": "tgt"}
    assert [e["text"] for e in recorded if e["kind"] == "note"] == formats
    assert [e["text"] for e in recorded if e["kind"] == "result"] == [first_row]
    assert [len(out.rows(split)) for split in summary.rows] == list(summary.rows.values())


REPLAY = {"train": "{SPAN}.tsv", "spans": {"window": 1, "replay": 0.1}}
INVALID = {
    "invalid UTF-8": ({"a.tsv": b"a\tb\na\xff\tb\n"}, {}, "a.tsv:2", "not UTF-8: byte 0xFF"),
    "sides of different length": (
        {"a": "1\n2\n3\n", "b": "1\n2\n"},
        {"train": {"source": "a", "target": "b"}},
        "a",
        "has 3 lines but",
    ),
    "too many skipped rows": (
        {"a.tsv": ROWS + "one\n" * 50},
        {"bad_rows": "skip"},
        "a.tsv:201",
        "50 of 650 rows (7.69%) would be skipped; the limit is 5.00%",
    ),
    "too few rows to split": (
        {"a.tsv": "a\tb\nc\td\ne\tf\n"},
        {"eval": None, "test": None},
        "data.split",
        "cannot be split",
    ),
    "a split without rows": (
        {"a.tsv": ROWS, "bad.tsv": b"\xff\tb\n"},
        {"test": "bad.tsv", "bad_rows": "skip", "bad_rows_limit": 1.0},
        "data.test",
        "test would have no rows (1 row skipped)",
    ),
    "a missing file": ({}, {"train": "b.tsv"}, "data.train", "No such file"),
    "a broken rule": ({}, {"split": {"by": "target"}}, "data.split", "cannot be combined"),
    "an incomplete span": (
        {"1.en": "a\n", "2.en": "a\n", "2.de": "a\n"},
        {"train": {"source": "{SPAN}.en", "target": "{SPAN}.de"}},
        "data.train.target",
        "span 1 is incomplete",
    ),
    "a replayed span with an invalid line": (
        {"1.tsv": b"a\tb\n\xff\tc\n", "2.tsv": ROWS},
        REPLAY,
        "1.tsv:2",
        "not UTF-8",
    ),
    "an empty replayed span": ({"1.tsv": "", "2.tsv": ROWS}, REPLAY, "1.tsv", "empty"),
}


def same_error(corpus, run_corpus):
    """The error that both give for a corpus."""
    with pytest.raises(UserError) as surveyed:
        survey(corpus)
    with pytest.raises(UserError) as converted:
        run_corpus(corpus)
    assert str(surveyed.value) == str(converted.value)
    return surveyed.value


@pytest.mark.parametrize("name", INVALID)
def test_invalid_corpora(tmp_path, run_corpus, name):
    files, changes, where, message = INVALID[name]
    write_files(tmp_path, {"good.tsv": ROWS, **files})
    section = {"train": "a.tsv", **SPLITS, "bad_rows_limit": 0.05, **changes}
    corpus = corpus_of(tmp_path, **section)
    error = same_error(corpus, run_corpus)
    assert error.where == (where if where.startswith("data.") else f"{tmp_path}/{where}")
    assert message in error.message
    examples = tmp_path / "out" / "examples"
    assert {path.name for path in examples.glob("*")} <= {mark_name(SCRATCH)}


def test_missing_images(tmp_path, run_corpus):
    (tmp_path / "a.png").write_bytes(picture())
    (tmp_path / "a.tsv").write_text("a.png\tone\nb.png\ttwo\n")
    files = dict.fromkeys(("train", "eval", "test"), "a.tsv")
    error = same_error(corpus_of(tmp_path, CAPTIONED, **files), run_corpus)
    assert error.message == "b.png: no such file (3 invalid rows in total)"
    skipping = corpus_of(tmp_path, CAPTIONED, **files, bad_rows="skip", bad_rows_limit=0.5)
    summary, _ = survey(skipping)
    assert summary.rows == run_corpus(skipping).findings["rows"] == dict.fromkeys(files, 1)
