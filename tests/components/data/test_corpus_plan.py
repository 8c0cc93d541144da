"""Reading of corpora without TensorFlow; ``test_plan_agreement`` compares it with CorpusGen."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.components.data.corpus_plan import CorpusPlan, survey_corpus
from tests.components.corpora import CAPTIONED, resolved

ROWS = "".join(f"word {i}\tWORD {i}\n" for i in range(200))


def survey(*arguments, **section):
    return survey_corpus(CorpusPlan(resolved(*arguments, **section)))


def test_rows_of_separate_and_hashed_splits(tmp_path):
    (tmp_path / "a.tsv").write_text(ROWS * 30)
    (tmp_path / "b.tsv").write_text("a\tb\n")
    progress = []
    plan = CorpusPlan(resolved(tmp_path, train="a.tsv", eval="a.tsv", test="b.tsv"))
    assert survey_corpus(plan, progress.append).rows == {"train": 6000, "eval": 6000, "test": 1}
    assert progress == ["a.tsv: 4,096 lines"] * 2
    hashed = survey(tmp_path, train="a.tsv", split={"eval": 0.2, "test": 0.2, "seed": 1})
    assert sum(hashed.rows.values()) == 6000
    assert min(hashed.rows.values()) > 500


def test_notes_about_skipped_rows(tmp_path):
    (tmp_path / "a.tsv").write_bytes(ROWS.encode() + b"one\n\xff\tB\n")
    files = dict.fromkeys(("train", "eval", "test"), "a.tsv")
    summary = survey(tmp_path, **files, bad_rows="skip")
    assert summary.rows["train"] == 200
    assert sorted(note.split(";")[0] for note in summary.notes) == [
        "6 invalid rows skipped",
    ]


def test_images_are_checked_without_tensorflow(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    (tmp_path / "a.tsv").write_text("a.png\tone\na.png\ttwo\n")
    files = dict.fromkeys(("train", "eval", "test"), "a.tsv")
    corpus = resolved(tmp_path, CAPTIONED, **files, images="photos")
    code = (
        "import json, sys; from regard.components.data.sources import Corpus; "
        "from regard.components.data.corpus_plan import CorpusPlan, survey_corpus; "
        "plan = CorpusPlan(Corpus.from_json(json.loads(sys.argv[1]))); "
        "print(survey_corpus(plan).rows, 'tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", code, json.dumps(corpus.to_json())]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == "{'train': 1, 'eval': 1, 'test': 1} False\n"


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
    summary = survey(tmp_path, train=train, split=split, spans={"test_share": 0.2})
    assert [span.span.name for span in summary.spans] == ["2026-11-19", "2026-11-20"]
    old, new = (span.rows for span in summary.spans)
    assert sum(old.values()) == sum(new.values()) == 100
    assert new["eval"] == old["eval"]
    assert new["test"] > old["test"]
    assert summary.rows == {name: old[name] + new[name] for name in old}
