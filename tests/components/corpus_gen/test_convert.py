from __future__ import annotations

import errno
import os

import pytest

from components.corpus_gen.convert import Report, convert
from components.corpus_gen.images import Images
from components.corpus_gen.records import ShardWriter
from components.corpus_gen.sources import Group
from components.corpus_gen.splits import HashedSplit
from tests.components.corpus_gen.corpora import CAPTIONED, TRANSLATION, picture

SECTION = {"features": TRANSLATION}


@pytest.fixture
def work(tmp_path):
    for name in ("train", "eval", "test"):
        (tmp_path / "work" / f"Split-{name}").mkdir(parents=True)
    return tmp_path / "work"


def group(tmp_path, content: bytes) -> Group:
    (tmp_path / "a.tsv").write_bytes(content)
    return Group("train", "tsv", (str(tmp_path / "a.tsv"),))


def parts(work):
    return sorted(path.name for path in work.rglob("part-*"))


def test_a_split_without_rows_has_no_shard(tmp_path, work):
    report = convert(3, group(tmp_path, b"a\tb\n"), SECTION, HashedSplit({"eval": 1e-9}), str(work))
    assert report.rows == {"train": 1, "eval": 0}
    assert parts(work) == ["part-00003-00000.gz"]


def test_a_refused_corpus_leaves_nothing(tmp_path, work):
    report = convert(0, group(tmp_path, b"a\tb\nc\n"), SECTION, None, str(work))
    assert report.problems.fatal
    assert parts(work) == []


def test_a_full_disk_is_reported_and_its_space_given_back(tmp_path, work, monkeypatch):
    rows = []
    real = ShardWriter.write

    def write(self, record):
        rows.append(record)
        if len(rows) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, record)

    monkeypatch.setattr(ShardWriter, "write", write)
    report = convert(0, group(tmp_path, b"a\tb\n" * 5), SECTION, None, str(work))
    assert report.failed == (errno.ENOSPC, "No space left on device")
    assert parts(work) == []


def test_a_report_survives_as_json(tmp_path, work):
    section = {**SECTION, "bad_rows": "skip"}
    report = convert(0, group(tmp_path, b"a\tb\nc\n"), section, None, str(work))
    assert Report.from_json(report.to_json()) == report
    report.failed = (errno.ENOSPC, "full")
    assert tuple(Report.from_json(report.to_json()).failed) == (errno.ENOSPC, "full")


def test_an_image_that_goes_away_ends_the_file(tmp_path, work, monkeypatch):
    (tmp_path / "a.png").write_bytes(picture())
    section = {"root": str(tmp_path), "features": CAPTIONED}
    monkeypatch.setattr(Images, "_wrong", lambda *_: None)
    report = convert(0, group(tmp_path, b"a.png\tx\nb.png\ty\n"), section, None, str(work))
    assert report.failed is None
    assert report.problems.broken[0].file == str(tmp_path / "b.png")
    assert parts(work) == []


def test_images_that_cannot_be_decoded_are_bad_rows(tmp_path, work):
    content = picture("jpeg", size=(64, 64))
    (tmp_path / "a.jpg").write_bytes(content)
    (tmp_path / "cut.jpg").write_bytes(content[:-100])
    rows = b"cut.jpg\tone\na.jpg\ttwo\ncut.jpg\tthree\na.jpg\tfour\n"
    section = {"root": str(tmp_path), "features": CAPTIONED, "bad_rows": "skip"}
    report = convert(0, group(tmp_path, rows), section, None, str(work))
    assert report.rows == {"train": 1}
    assert (report.problems.rows, report.problems.left_out) == (4, 2)
    told = [(p.line, p.text) for p in report.problems.examples["row/skip"]]
    assert told == [(1, "cut.jpg is cut off"), (3, "cut.jpg is cut off")]
