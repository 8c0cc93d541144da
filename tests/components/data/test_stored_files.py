"""Corpora in object storage: files, patterns, spans, folders, and what is refused."""

import uuid
from pathlib import Path

import pytest

from regard.components.data.config_rules import check_config
from regard.components.data.fingerprints import fingerprint
from regard.components.data.sources import find_files
from regard.core.errors import UserError
from regard.core.storage import SOURCE, registry_folder
from tests.components.corpora import CAPTIONED, corpus_of, resolved, write_files

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    """Returns a writer of objects of a new bucket, which has the bucket's URI."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    files = fsspec.filesystem("memory")

    def write(*names, content="a\tb\n"):
        for name in names:
            files.pipe_file(f"/{write.uri.removeprefix('memory://')}/{name}", content.encode())

    write.uri = f"memory://{uuid.uuid4().hex}"
    write.remove = lambda name: files.rm(f"/{write.uri.removeprefix('memory://')}/{name}")
    return write


def names_of(corpus):
    """The files of the split train, relative to the bucket."""
    files = [file for group in find_files(corpus)["train"] for file in group.files]
    return [file.partition("/cache/memory/")[2].partition("/")[2] for file in files]


def test_a_corpus_is_the_same_as_a_local_one(bucket, tmp_path):
    bucket("d/train.tsv", "d/eval.tsv")
    bucket("d/test.tsv", content="c\td\n")
    write_files(tmp_path / "d", {"train.tsv": "a\tb\n", "eval.tsv": "a\tb\n", "test.tsv": "c\td\n"})
    files = {"train": "train.tsv", "eval": "eval.tsv", "test": "test.tsv"}
    local = fingerprint(resolved(tmp_path / "d", **files))
    assert fingerprint(resolved(f"{bucket.uri}/d", **files)) == local
    uris = {split: f"{bucket.uri}/d/{name}" for split, name in files.items()}
    assert fingerprint(resolved(tmp_path, **uris)) == local


def test_parallel_files_and_languages(bucket, tmp_path):
    bucket("a.en", "a.de")
    corpus = resolved(bucket.uri, train="a", columns={"source": "en", "target": "de"})
    assert names_of(corpus) == ["a.en", "a.de"]
    sides = {"source": f"{bucket.uri}/a.en", "target": [f"{bucket.uri}/a.de"]}
    assert names_of(resolved(tmp_path, train=sides)) == ["a.en", "a.de"]
    languages = {"source": "en", "target": "de"}
    stem = resolved(tmp_path, train=f"{bucket.uri}/a", columns=languages)
    assert names_of(stem) == ["a.en", "a.de"]
    assert check_config(stem) is None


def test_a_pattern_follows_the_bucket(bucket):
    bucket("x/1.tsv", "x/2.tsv", "x/deep/3.tsv", "x/other.txt")
    assert names_of(resolved(bucket.uri, train="x/*.tsv")) == ["x/1.tsv", "x/2.tsv"]
    bucket.remove("x/1.tsv")
    bucket("x/4.tsv")
    assert names_of(resolved(bucket.uri, train="x/**/*.tsv")) == [
        *("x/2.tsv", "x/4.tsv", "x/deep/3.tsv")
    ]


def test_a_file_that_is_no_copy_is_neither_removed_nor_read(bucket):
    bucket("x/1.tsv")
    (file,) = (
        group.files[0] for group in find_files(resolved(bucket.uri, train="x/*.tsv"))["train"]
    )
    mine = Path(file).with_name("mine.tsv")
    mine.write_text("mine\tmine\n")
    with pytest.raises(UserError) as caught:
        resolved(bucket.uri, train="x/*.tsv")
    assert caught.value.where == "data.train"
    assert str(mine) in caught.value.message
    assert mine.read_text() == "mine\tmine\n"


def test_spans_with_versions_and_a_marker(bucket):
    bucket("1-1/a.tsv", "1-2/a.tsv", "2-1/a.tsv", "1-1/DONE", "1-2/DONE")
    corpus = resolved(bucket.uri, train="{SPAN}-{VERSION}/*.tsv", spans={"marker": "DONE"})
    assert [(span.name, span.version) for span in corpus.spans] == [("1", 2)]
    bucket("2-1/DONE")
    corpus = resolved(bucket.uri, train="{SPAN}-{VERSION}/*.tsv", spans={"marker": "DONE"})
    assert names_of(corpus) == ["1-2/a.tsv", "2-1/a.tsv"]


def test_images_are_copied(bucket):
    bucket("c.tsv", content="images/1.png\ta b\n")
    bucket("images/1.png", content="png")
    corpus = resolved(bucket.uri, CAPTIONED, train="c.tsv", images="images")
    assert (corpus.config.root, corpus.config.images) != (bucket.uri, None)
    find_files(corpus)


def test_a_registry_below_the_data_keeps_its_hidden_files(bucket):
    folder = registry_folder(f"{bucket.uri}/registry")
    (folder / ".pushing-1").mkdir()
    (folder / ".pushing-1" / "saved_model.pb").write_bytes(b"x")
    bucket("c.tsv", content="1.png\ta b\n")
    bucket("1.png", content="png")
    resolved(bucket.uri, CAPTIONED, train="c.tsv")
    assert (folder / SOURCE).is_file()
    assert (folder / ".pushing-1" / "saved_model.pb").is_file()


@pytest.mark.parametrize(
    ("section", "where", "message"),
    [
        ({"train": "none.tsv"}, "data.train", "No object matches memory://.*/none.tsv"),
        ({"train": "*.csv"}, "data.train", r"No object matches memory://.*/\*.csv"),
        ({"train": {"source": "a.tsv", "target": "b"}}, "data.train.target", "No object matches"),
        ({"train": "folder", "format": "tsv"}, "data.train", "is a folder"),
        ({"train": "../a.tsv"}, "memory://", "cannot be that of a file"),
    ],
)
def test_errors_name_the_uri_and_the_key(bucket, section, where, message):
    bucket("a.tsv", "folder/a.tsv")
    with pytest.raises(UserError, match=message) as caught:
        resolved(bucket.uri, **section)
    assert caught.value.where.startswith(where)


def test_a_local_corpus_is_not_touched(tmp_path):
    write_files(tmp_path, {"a.tsv": "a\tb\n"})
    corpus = corpus_of(tmp_path, train="a.tsv")
    assert resolved(tmp_path, train="a.tsv").config == corpus.config
