"""What lies there now, and when it is another than before."""

import os

import pytest

from components.errors import UserError
from pipeline.config import load
from pipeline.keys import vector_files
from pipeline.scheduling.look import look
from pipeline.workspace import Workspace
from tests.pipeline.scheduling.growing import CONFIG, Corpus

PLAIN = CONFIG.replace("train-{SPAN:3}.tsv", "train.tsv")


@pytest.fixture
def corpus(tmp_path):
    made = Corpus(tmp_path)
    made.span(1)
    return made


@pytest.fixture
def paths(tmp_path):
    return Workspace(tmp_path / "home").pipeline("tiny")


def test_the_key_is_of_data_and_settings_but_not_of_the_schedule(corpus, paths):
    first = look(corpus.config(), paths)
    assert look(corpus.config("  every: 1h\n"), paths).key == first.key
    other = CONFIG.replace("schedule:", "training: {max_epochs: 2}\nschedule:")
    changed = look(corpus.config(text=other), paths)
    assert (changed.key != first.key, changed.fingerprint) == (True, first.fingerprint)
    corpus.span(2)
    assert look(corpus.config(), paths).key != first.key


def test_the_fingerprint_is_the_one_that_runs_record(corpus, paths):
    from components.corpus_gen import fingerprint
    from pipeline.inputs import data_section

    config = corpus.config()
    data = data_section(config)
    del data["checks"]
    assert look(config, paths).fingerprint == fingerprint(data)


def test_spans_are_told_with_the_content_of_all_their_files(corpus, paths):
    corpus.span(2)
    seen = look(corpus.config(), paths)
    assert list(seen.spans) == ["1", "2"]
    corpus.span(2, count=101)
    again = look(corpus.config(), paths)
    assert again.spans["1"] == seen.spans["1"]
    assert again.spans["2"] != seen.spans["2"]


def test_rows_are_counted_once_for_the_same_content(corpus, paths):
    paths.schedule.mkdir(parents=True)
    corpus.span(2, count=30)
    seen = look(corpus.config(), paths, count=True)
    assert [group["rows"] for group in seen.groups] == [100, 30]
    kept = paths.schedule / "rows.json"
    kept.write_text(kept.read_text().replace(": 30", ": 31"))
    assert [group["rows"] for group in look(corpus.config(), paths, count=True).groups] == [100, 31]


def test_nothing_is_written_before_the_pipeline_has_a_folder(corpus, paths):
    look(corpus.config(), paths, count=True)
    assert not paths.root.exists()


def test_other_vectors_are_other_data(corpus, paths):
    vectors = corpus.folder / "vectors.txt"
    vectors.write_text("a 1.0 2.0\n")
    text = CONFIG.replace(
        "schedule:", f"model: {{embedding: 2, pretrained: {{source: {vectors}}}}}\nschedule:"
    )
    first = look(corpus.config(text=text), paths)
    vectors.write_text("a 1.0 3.0\n")
    os.utime(vectors, (1, 1))
    again = look(corpus.config(text=text), paths)
    assert (first.fingerprint, first.key != again.key) == (again.fingerprint, True)
    assert again.words == vector_files(load(corpus.folder / "tiny.yaml"))  # which runs record
    vectors.unlink()
    with pytest.raises(UserError, match="no such file of words or vectors"):
        look(load(corpus.folder / "tiny.yaml"), paths)


def test_a_missing_file_is_told_as_a_run_would(corpus, paths):
    (corpus.folder / "data" / "eval.tsv").unlink()
    with pytest.raises(UserError) as caught:
        look(corpus.config(), paths)
    assert caught.value.where == "data.eval"


def test_a_file_that_cannot_be_counted_is_told(corpus, paths):
    corpus.write("train.tsv.gz", [])
    (corpus.folder / "data" / "train.tsv.gz").write_bytes(b"no gzip at all")
    with pytest.raises(UserError, match="cannot be read"):
        look(corpus.config("  new_rows: 1\n", PLAIN.replace(".tsv", ".tsv.gz", 1)), paths, True)
