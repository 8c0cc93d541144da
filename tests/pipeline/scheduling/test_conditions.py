"""What is reason enough for a run, held against the last training."""

import json
import re

import pytest

from components.registry import PROFILE
from pipeline.scheduling import conditions
from pipeline.scheduling.decision import remembered
from pipeline.scheduling.look import look
from pipeline.scheduling.profile import profile_of
from pipeline.workspace import Workspace
from tests.pipeline.scheduling.growing import CONFIG, Corpus, rows

PLAIN = CONFIG.replace("train-{SPAN:3}.tsv", "train.tsv")
LIMITS = {"drift_words": 0.03, "drift_oov": 0.02, "drift_lengths": 0.05}


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path)


@pytest.fixture
def paths(tmp_path):
    made = Workspace(tmp_path / "home").pipeline("tiny")
    made.schedule.mkdir(parents=True)
    return made


class TestNewSpan:
    @pytest.fixture
    def trained(self, corpus, paths):
        corpus.span(1)
        corpus.span(2)
        return remembered(look(corpus.config(), paths))

    def found(self, corpus, paths, trained):
        return conditions.new_span(look(corpus.config(), paths), trained)

    def test_before_the_first_training_all_are(self, corpus, paths, trained):
        assert self.found(corpus, paths, None).holds

    def test_none(self, corpus, paths, trained):
        found = self.found(corpus, paths, trained)
        assert (found.holds, found.text) == (False, "no span is new since 2")

    def test_some(self, corpus, paths, trained):
        corpus.span(3)
        assert self.found(corpus, paths, trained).text == "span 3 is new"
        corpus.span(4)
        assert self.found(corpus, paths, trained).text == "spans 3, 4 are new"

    def test_one_with_other_content(self, corpus, paths, trained):
        corpus.span(2, count=90)
        found = self.found(corpus, paths, trained)
        assert (found.holds, found.text) == (True, "span 2 is not what was trained on")

    def test_one_that_went(self, corpus, paths, trained):
        (corpus.folder / "data" / "train-001.tsv").unlink()
        assert not self.found(corpus, paths, trained).holds


class TestNewRows:
    def found(self, corpus, paths, trained, text=CONFIG, least=50):
        seen = look(corpus.config("  new_rows: 50\n", text), paths, count=True)
        return conditions.new_rows(seen, trained, least), remembered(seen)

    def test_before_the_first_training_all_are(self, corpus, paths):
        corpus.span(1)
        assert self.found(corpus, paths, None)[0].holds

    def test_a_new_file_counts_whole(self, corpus, paths):
        corpus.span(1)
        _, trained = self.found(corpus, paths, None)
        corpus.span(2, count=49)
        found, _ = self.found(corpus, paths, trained)
        assert (found.holds, found.text) == (False, "49 new rows, and 50 are needed")
        corpus.span(2, count=50)
        assert self.found(corpus, paths, trained)[0].holds

    @pytest.mark.parametrize("name", ["train.tsv", "train.tsv.gz"])
    def test_of_a_file_that_grew_counts_what_was_added(self, corpus, paths, name):
        text = PLAIN.replace("train.tsv", name)
        corpus.write(name, rows(100, 1))
        _, trained = self.found(corpus, paths, None, text)
        corpus.write(name, rows(49, 2), append=True)
        assert self.found(corpus, paths, trained, text)[0].text.startswith("49 new rows")
        corpus.write(name, rows(1, 3), append=True)
        assert self.found(corpus, paths, trained, text)[0].holds

    def test_of_a_file_that_was_written_anew_every_row_counts(self, corpus, paths):
        corpus.write("train.tsv", rows(100, 1))
        _, trained = self.found(corpus, paths, None, PLAIN)
        corpus.write("train.tsv", rows(60, 2))
        assert self.found(corpus, paths, trained, PLAIN)[0].text.startswith("60 new rows")

    def test_a_file_with_another_name_is_not_new(self, corpus, paths):
        path = corpus.span(1)
        _, trained = self.found(corpus, paths, None)
        path.rename(path.with_name("train-002.tsv"))
        assert self.found(corpus, paths, trained)[0].text.startswith("0 new rows")

    def test_a_window_that_moves_on_has_new_rows(self, corpus, paths):
        text = CONFIG.replace("schedule:", "  spans: {window: 2}\nschedule:")
        corpus.span(1)
        corpus.span(2)
        _, trained = self.found(corpus, paths, None, text)
        corpus.span(3)
        assert self.found(corpus, paths, trained, text)[0].text.startswith("100 new rows")


class TestDrift:
    def found(self, corpus, paths, limits=LIMITS):
        config = corpus.config("  drift: {}\n")
        return conditions.drifted(look(config, paths), config, limits, paths.schedule)

    def push(self, corpus, paths):
        """The profile of the data as it is, beside a version in production."""
        folder = corpus.folder / "home/registry/tiny/1"
        (folder / PROFILE).parent.mkdir(parents=True)
        (folder / "saved_model.pb").touch()
        seen = look(corpus.config(), paths)
        (folder / PROFILE).write_text(json.dumps(profile_of(seen.data)))

    def test_at_first_there_is_nothing_to_measure_it_from(self, corpus, paths):
        corpus.span(1)
        assert self.found(corpus, paths).holds

    def test_from_the_version_in_production(self, corpus, paths):
        corpus.span(1, count=2000)
        self.push(corpus, paths)
        found = self.found(corpus, paths)
        assert not found.holds
        assert found.text.startswith("since tiny@1, words of source 0.000 (up to 0.03)")
        corpus.span(2, count=2000)  # more of the same
        assert not self.found(corpus, paths).holds
        corpus.span(3, count=2000, letters="uvwxyz")
        found = self.found(corpus, paths)
        assert found.holds
        assert re.search(r"words of \w+ 0\.\d{3} \(above 0\.03\), new words of", found.text)
        assert "lengths" not in found.text

    def test_its_own_limit_counts(self, corpus, paths):
        corpus.span(1, count=2000)
        self.push(corpus, paths)
        corpus.span(2, count=2000, letters="uvwxyz")
        assert not self.found(corpus, paths, {"drift_words": 1.0}).holds

    def test_from_the_last_training_where_nothing_is_in_production(self, corpus, paths):
        corpus.span(1, count=2000)
        self.found(corpus, paths)
        (paths.schedule / conditions.LOOKED).rename(paths.schedule / conditions.TRAINED)
        assert self.found(corpus, paths).text.startswith("since the last training")
