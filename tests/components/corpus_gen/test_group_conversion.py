import errno
import os

import pytest

from regard.components.corpus_gen.example_writer import (
    ShardWriter,
    convert,
    convert_or_count,
    read_result,
)
from regard.components.data.group_jobs import GroupJob
from regard.components.data.images import Images
from regard.components.data.sources import FileGroup
from regard.components.data.split_assignment import HashedSplit
from tests.components.corpora import CAPTIONED, TRANSLATION, corpus_of, picture


@pytest.fixture
def folder(tmp_path):
    for name in ("train", "eval", "test"):
        (tmp_path / "work" / f"Split-{name}").mkdir(parents=True)
    return tmp_path / "work"


def job(tmp_path, content: bytes, index=0, split=None) -> GroupJob:
    (tmp_path / "a.tsv").write_bytes(content)
    return GroupJob(index, FileGroup("train", "tsv", (str(tmp_path / "a.tsv"),)), split)


def convert_rows(tmp_path, folder, content, split=None, features=TRANSLATION, **section):
    corpus = corpus_of(tmp_path, features, train="a.tsv", **section)
    return convert(job(tmp_path, content, 3, split), corpus, str(folder), None)


def shards(folder):
    return sorted(path.name for path in folder.rglob("part-*"))


def test_split_without_rows_has_no_shard(tmp_path, folder):
    result = convert_rows(tmp_path, folder, b"a\tb\n", HashedSplit({"eval": 1e-9}))
    assert result.rows == {"train": 1, "eval": 0}
    assert shards(folder) == ["part-00003-00000.gz"]


def test_invalid_rows_leave_no_shard(tmp_path, folder):
    assert convert_rows(tmp_path, folder, b"a\tb\nc\n").problems.skipped_rows == 1
    assert shards(folder) == []


def test_full_disk_is_reported_and_shards_are_removed(tmp_path, folder, monkeypatch):
    rows = []
    write = ShardWriter.write

    def fail_at_third(self, record):
        rows.append(record)
        if len(rows) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, record)

    monkeypatch.setattr(ShardWriter, "write", fail_at_third)
    result = convert_rows(tmp_path, folder, b"a\tb\n" * 5)
    assert result.write_error == (errno.ENOSPC, "No space left on device")
    assert shards(folder) == []


def test_result_is_saved(tmp_path, folder):
    corpus = corpus_of(tmp_path, train="a.tsv", bad_rows="skip")
    one = job(tmp_path, b"a\tb\nc\n")
    convert_or_count(one, corpus.to_json(), str(folder))
    assert read_result(str(folder), 0) == convert(one, corpus, str(folder), None)


def test_vanished_image_ends_the_file(tmp_path, folder, monkeypatch):
    (tmp_path / "a.png").write_bytes(picture())
    monkeypatch.setattr(Images, "_problem", lambda *_: None)
    result = convert_rows(tmp_path, folder, b"a.png\tx\nb.png\ty\n", features=CAPTIONED)
    assert result.write_error is None
    assert result.problems.unreadable[0].file == str(tmp_path / "b.png")
    assert shards(folder) == []


def test_undecodable_images_are_invalid_rows(tmp_path, folder):
    content = picture("jpeg", size=(64, 64))
    (tmp_path / "a.jpg").write_bytes(content)
    (tmp_path / "cut.jpg").write_bytes(content[:-100])
    rows = b"cut.jpg\tone\na.jpg\ttwo\ncut.jpg\tthree\na.jpg\tfour\n"
    result = convert_rows(tmp_path, folder, rows, features=CAPTIONED, bad_rows="skip")
    assert result.rows == {"train": 1}
    assert (result.problems.rows, result.problems.skipped_rows) == (4, 2)
    message = "cut.jpg is truncated or damaged"
    assert [(p.line, p.text) for p in result.problems.examples] == [(1, message), (3, message)]
