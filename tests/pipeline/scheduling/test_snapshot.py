"""Snapshots of data and settings."""

import os

import pytest

from regard.core.errors import UserError
from regard.pipeline.cache_keys import vector_digests
from regard.pipeline.config import load
from regard.pipeline.scheduling.snapshot import settings_digest, take_snapshot
from tests.pipeline.scheduling.growing_corpus import CONFIG

SINGLE_FILE = CONFIG.replace("train-{SPAN:3}.tsv", "train.tsv")


@pytest.fixture
def first_span(corpus):
    return corpus.write_span(1)


@pytest.mark.usefixtures("first_span")
class TestSnapshot:
    def test_the_key_depends_on_data_and_settings(self, corpus, paths):
        first = take_snapshot(corpus.config(), paths)
        assert take_snapshot(corpus.config("  every: 1h\n"), paths).key == first.key
        changed = CONFIG.replace("schedule:", "training: {max_epochs: 2}\nschedule:")
        snapshot = take_snapshot(corpus.config(text=changed), paths)
        assert snapshot.key != first.key
        assert snapshot.fingerprint == first.fingerprint
        corpus.write_span(2)
        assert take_snapshot(corpus.config(), paths).key != first.key

    def test_spans_have_the_digests_of_their_files(self, corpus, paths):
        corpus.write_span(2)
        before = take_snapshot(corpus.config(), paths).spans
        assert list(before) == ["1", "2"]
        corpus.write_span(2, count=101)
        after = take_snapshot(corpus.config(), paths).spans
        assert after["1"] == before["1"]
        assert after["2"] != before["2"]

    def test_rows_are_counted_once_per_content(self, corpus, paths):
        def rows():
            snapshot = take_snapshot(corpus.config(), paths, count_rows=True)
            return [group.rows for group in snapshot.groups]

        assert rows() == [100]
        assert not paths.root.exists()  # nothing is written before the first run
        paths.schedule.mkdir(parents=True)
        corpus.write_span(2, count=30)
        assert rows() == [100, 30]
        cache = paths.schedule / "rows.json"
        cache.write_text(cache.read_text().replace(": 30", ": 31"))
        assert rows() == [100, 31]

    def test_word_vectors_are_part_of_the_key(self, corpus, paths):
        vectors = corpus.folder / "vectors.txt"
        vectors.write_text("a 1.0 2.0\n")
        model = f"model: {{embedding: 2, pretrained: {{source: {vectors}}}}}\nschedule:"
        text = CONFIG.replace("schedule:", model)
        first = take_snapshot(corpus.config(text=text), paths)
        vectors.write_text("a 1.0 3.0\n")
        os.utime(vectors, (1, 1))
        second = take_snapshot(corpus.config(text=text), paths)
        assert (first.fingerprint, first.key != second.key) == (second.fingerprint, True)
        assert second.word_files == vector_digests(load(corpus.folder / "tiny.yaml"))
        vectors.unlink()
        with pytest.raises(UserError, match=r"vectors\.txt does not exist") as caught:
            take_snapshot(load(corpus.folder / "tiny.yaml"), paths)
        assert caught.value.where.endswith("model.pretrained.source")

    @pytest.mark.parametrize(
        ("section", "key", "option"),
        [
            ("tokenizer", "model", "tokenizer.model"),
            ("tokenizer", "word_list", "tokenizer.word_list"),
            ("data", "monolingual", "data.monolingual"),
        ],
    )
    def test_error_of_a_missing_file_names_its_option(self, corpus, paths, section, key, option):
        config = corpus.config()
        missing = str(corpus.folder / "own.file")
        changes = {key: [missing] if key == "monolingual" else missing}
        settings = getattr(config, section).model_copy(update=changes)
        config = config.model_copy(update={section: settings})
        with pytest.raises(UserError, match=r"own\.file") as caught:
            take_snapshot(config, paths)
        assert caught.value.where.endswith(option)

    def test_missing_and_unreadable_files_are_errors(self, corpus, paths):
        corpus.write("train.tsv.gz", []).write_bytes(b"not compressed")
        text = SINGLE_FILE.replace(".tsv", ".tsv.gz", 1)
        with pytest.raises(UserError, match=r"the name ends in \.gz"):
            take_snapshot(corpus.config("  new_rows: 1\n", text), paths, count_rows=True)
        (corpus.folder / "data" / "eval.tsv").unlink()
        with pytest.raises(UserError) as caught:
            take_snapshot(corpus.config(), paths)
        assert caught.value.where.endswith("tiny.yaml:6: data.eval")


@pytest.mark.parametrize(
    ("section", "is_ignored"),
    [
        ("tune: {search_space: {training.learning_rate: {log: [0.0001, 0.01]}}}\n", True),
        ("beam: {runner: processes}\n", True),
        ("training: {max_epochs: 3}\n", False),
    ],
)
def test_settings_digest_ignores_sections_that_do_not_change_the_model(corpus, section, is_ignored):
    plain = settings_digest(corpus.config())
    changed = settings_digest(corpus.config(text=section + CONFIG))
    assert (changed == plain) is is_ignored
