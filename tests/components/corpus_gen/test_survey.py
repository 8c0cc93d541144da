"""What `regard validate` finds in the data, file by file, without TensorFlow."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.corpus_gen.survey import survey
from components.errors import UserError
from tests.components.corpus_gen.corpora import CAPTIONED, TRANSLATION

ROWS = "".join(f"word {i}\tWORD {i}\n" for i in range(200))
PACKED = gzip.compress(ROWS.encode(), mtime=0)


def data(folder, **section):
    return {"root": str(folder), "features": TRANSLATION, **section}


def test_rows_and_files_of_given_and_hashed_splits(tmp_path):
    (tmp_path / "a.tsv").write_text(ROWS)
    (tmp_path / "b.tsv").write_text("a\tb\n")
    told = []
    found = survey(data(tmp_path, train="a.tsv", eval="a.tsv", test="b.tsv"), told.append)
    assert found.rows == {"train": 200, "eval": 200, "test": 1}
    assert found.files["test"] == [str(tmp_path / "b.tsv")]
    drawn = survey(data(tmp_path, train="a.tsv", split={"eval": 0.2, "test": 0.2, "seed": 1}))
    assert sum(drawn.rows.values()) == 200
    assert all(drawn.rows[name] > 10 for name in ("train", "eval", "test"))


def test_what_is_skipped_is_counted(tmp_path):
    (tmp_path / "a.tsv").write_bytes(ROWS.encode() + b"one\n\xff\tB\n")
    section = data(
        tmp_path, train="a.tsv", eval="a.tsv", test="a.tsv", bad_rows="skip", encoding_errors="skip"
    )
    found = survey(section)
    assert found.rows["train"] == 200
    told = sorted(note.split(" (")[0] for note in found.notes)
    assert told == ["3 bad rows", "3 lines are not UTF-8"]


@pytest.mark.parametrize(
    ("name", "content", "where", "told"),
    [
        ("a.tsv", b"", "a.tsv", "empty"),
        ("a.tsv", ROWS.encode() + b"a\xff\tb\n", "a.tsv:201", "not UTF-8: byte 0xFF"),
        ("a.tsv", ROWS.encode() + b"a\0\tb\n", "a.tsv:201", "NUL"),
        ("a.tsv", ROWS.encode() + b"a\n", "a.tsv:201", "1 column, not 2"),
        ("a.tsv", ROWS.encode() + b"a\tb\tc\n", "a.tsv:201", "3 columns, not 2"),
        ("a.tsv.gz", PACKED[:-200], "a.tsv.gz", "cut off after line"),
        ("a.tsv.gz", ROWS.encode(), "a.tsv.gz", "plain text"),
    ],
)
def test_a_bad_file_is_named_with_line_and_remedy(tmp_path, name, content, where, told):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.tsv").write_text(ROWS)
    with pytest.raises(UserError) as caught:
        survey(data(tmp_path, train=name, eval="good.tsv", test="good.tsv"))
    assert caught.value.where == str(tmp_path / where)
    assert told in caught.value.message
    assert caught.value.remedy


def test_uneven_files_are_refused_with_both_counts(tmp_path):
    (tmp_path / "a").write_text("1\n2\n3\n")
    (tmp_path / "b").write_text("1\n2\n")
    with pytest.raises(UserError, match=r"a has 3 lines but .*b has 2 lines"):
        survey(data(tmp_path, train={"source": "a", "target": "b"}))


def test_three_lines_cannot_be_split(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\nc\td\ne\tf\n")
    with pytest.raises(UserError, match="3 rows are too few to split"):
        survey(data(tmp_path, train="a.tsv"))


def test_u2028_and_a_very_long_line_are_rows_as_any_other(tmp_path):
    long = " ".join(["word"] * 10_000)
    (tmp_path / "a.tsv").write_text(f"a\u2028b\tA\n{long}\t{long}\n", encoding="utf-8")
    found = survey(data(tmp_path, train="a.tsv", eval="a.tsv", test="a.tsv"))
    assert found.rows == {"train": 2, "eval": 2, "test": 2}


def test_it_needs_no_tensorflow():
    code = "import sys, components.corpus_gen.survey; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_too_many_rows_that_are_left_out_are_refused(tmp_path):
    (tmp_path / "a.tsv").write_text(ROWS + "one\n" * 50)
    section = data(tmp_path, train="a.tsv", bad_rows="skip")
    with pytest.raises(UserError) as caught:
        survey(section)
    assert caught.value.message.startswith("50 of 250 rows (20.00%) would be left out; the limit")
    assert caught.value.where == f"{tmp_path}/a.tsv:201"
    assert survey({**section, "bad_rows_limit": 0.2}).rows["train"] > 100


def test_images_are_looked_at_without_tensorflow(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    (tmp_path / "a.tsv").write_text("a.png\tone\na.png\ttwo\n")
    section = {**dict.fromkeys(("train", "eval", "test"), "a.tsv"), "features": CAPTIONED}
    section |= {"root": str(tmp_path), "images": "photos"}
    code = (
        "import json, sys; from components.corpus_gen.survey import survey; "
        "print(survey(json.loads(sys.argv[1])).rows, 'tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", code, json.dumps(section)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "{'train': 1, 'eval': 1, 'test': 1} False\n"
    (tmp_path / "photos" / "a.png").unlink()
    with pytest.raises(UserError, match=r"a\.tsv:1: photos/a\.png: no such file \(6 such lines"):
        survey(section)


@pytest.mark.parametrize("kind", ["parallel", "tsv.gz", "jsonl", "parquet"])
def test_spans_of_every_format(tmp_path, kind):
    rows = [(f"word {i}", f"WORD {i}") for i in range(100)]
    for span in ("2026-11-19", "2026-11-20"):
        path = tmp_path / f"{span}.{kind}"
        if kind == "parallel":
            for name, side in zip(("en", "de"), zip(*rows, strict=True), strict=True):
                (tmp_path / f"{span}.{name}").write_text("\n".join(side) + "\n")
        elif kind == "tsv.gz":
            path.write_bytes(gzip.compress("".join("\t".join(r) + "\n" for r in rows).encode()))
        elif kind == "jsonl":
            texts = (json.dumps(dict(zip(("source", "target"), r, strict=True))) for r in rows)
            path.write_text("\n".join(texts) + "\n")
        else:
            sources, targets = zip(*rows, strict=True)
            pq.write_table(pa.table({"source": sources, "target": targets}), path)
    pattern = "{YYYY}-{MM}-{DD}"
    train = {"source": f"{pattern}.en", "target": f"{pattern}.de"}
    train = train if kind == "parallel" else f"{pattern}.{kind}"
    split = {"eval": 0.1, "test": 0.1}
    found = survey(data(tmp_path, train=train, split=split, spans={"test_share": 0.2}))
    old, new = (one["rows"] for one in found.spans)
    assert [one["name"] for one in found.spans] == ["2026-11-19", "2026-11-20"]
    assert sum(old.values()) == sum(new.values()) == 100
    assert new["eval"] == old["eval"]
    assert new["test"] > old["test"]
    assert found.rows == {name: old[name] + new[name] for name in old}
