"""The conditions for a run."""

import json
import re

import pytest

from regard.components.example_validator.corpus_checks import profile_training_split
from regard.pipeline.scheduling import conditions
from regard.pipeline.scheduling.conditions import cached_profile
from regard.pipeline.scheduling.snapshot import take_snapshot
from regard.serving.contract import PROFILE
from tests.pipeline.scheduling.growing_corpus import CONFIG, make_rows

SINGLE_FILE = CONFIG.replace("train-{SPAN:3}.tsv", "train.tsv")


class TestNewSpan:
    @pytest.fixture
    def trained(self, corpus, paths):
        corpus.write_span(1)
        corpus.write_span(2)
        return take_snapshot(corpus.config(), paths).trained_by()

    @pytest.fixture
    def check(self, corpus, paths, trained):
        def run(trained=trained):
            result = conditions.check_new_span(take_snapshot(corpus.config(), paths), trained)
            return result.is_met, result.text

        return run

    def test_before_the_first_training(self, check):
        assert check(None) == (True, "nothing was trained yet")

    def test_no_new_span(self, corpus, check):
        assert check() == (False, "no span after 2")
        (corpus.folder / "data" / "train-001.tsv").unlink()
        assert not check()[0]

    def test_new_spans(self, corpus, check):
        corpus.write_span(3)
        assert check() == (True, "span 3 is new")
        corpus.write_span(4)
        assert check() == (True, "spans 3, 4 are new")

    def test_a_span_with_other_content(self, corpus, check):
        corpus.write_span(2, count=90)
        assert check() == (True, "span 2 is changed since the last training")


class TestNewRows:
    @pytest.fixture
    def check(self, corpus, paths):
        """Returns whether there are 50 new rows, their number, and the data."""

        def run(trained, text=CONFIG):
            config = corpus.config("  new_rows: 50\n", text)
            snapshot = take_snapshot(config, paths, count_rows=True)
            result = conditions.check_new_rows(snapshot, trained, 50)
            return result.is_met, result.text.partition(" ")[0], snapshot.trained_by()

        return run

    def test_a_new_file_counts_whole(self, corpus, check):
        corpus.write_span(1)
        is_met, _, trained = check(None)
        assert is_met
        corpus.write_span(2, count=49)
        assert check(trained)[:2] == (False, "49")
        corpus.write_span(2, count=50)
        assert check(trained)[:2] == (True, "50")

    @pytest.mark.parametrize("name", ["train.tsv", "train.tsv.gz"])
    def test_appended_rows_count(self, corpus, check, name):
        text = SINGLE_FILE.replace("train.tsv", name)
        corpus.write(name, make_rows(100, 1))
        trained = check(None, text)[2]
        corpus.write(name, make_rows(49, 2), append=True)
        assert check(trained, text)[:2] == (False, "49")
        corpus.write(name, make_rows(1, 3), append=True)
        assert check(trained, text)[:2] == (True, "50")

    def test_all_rows_of_a_rewritten_file_count(self, corpus, check):
        corpus.write("train.tsv", make_rows(100, 1))
        trained = check(None, SINGLE_FILE)[2]
        corpus.write("train.tsv", make_rows(60, 2))
        assert check(trained, SINGLE_FILE)[:2] == (True, "60")

    def test_a_renamed_file_has_no_new_rows(self, corpus, check):
        path = corpus.write_span(1)
        trained = check(None)[2]
        path.rename(path.with_name("train-002.tsv"))
        assert check(trained)[:2] == (False, "0")

    def test_a_moving_window_has_new_rows(self, corpus, check):
        text = CONFIG.replace("schedule:", "  spans: {window: 2}\nschedule:")
        corpus.write_span(1)
        corpus.write_span(2)
        trained = check(None, text)[2]
        corpus.write_span(3)
        assert check(trained, text)[:2] == (True, "100")


class TestDrift:
    @pytest.fixture(autouse=True)
    def schedule_folder(self, paths):
        paths.schedule.mkdir(parents=True)

    @pytest.fixture
    def check(self, corpus, paths):
        def run():
            config = corpus.config("  drift: true\n")
            return conditions.check_drift(take_snapshot(config, paths), config, paths.schedule)

        return run

    def test_without_a_reference(self, corpus, check):
        corpus.write_span(1)
        assert check().is_met

    def test_from_the_version_in_production(self, corpus, paths, check):
        corpus.write_span(1, count=2000)
        folder = corpus.folder / "home/registry/tiny/1"
        (folder / PROFILE).parent.mkdir(parents=True)
        (folder / "saved_model.pb").touch()
        profile = profile_training_split(take_snapshot(corpus.config(), paths).corpus)
        (folder / PROFILE).write_text(json.dumps(profile))
        result = check()
        assert not result.is_met
        assert result.text.startswith("since tiny@1: words of source 0.000 (≤ 0.03)")
        corpus.write_span(2, count=2000)  # more of the same
        assert not check().is_met
        corpus.write_span(3, count=2000, letters="uvwxyz")
        result = check()
        assert result.is_met
        assert re.search(r"words of \w+ 0\.\d{3} \(> 0\.03\), new words of", result.text)
        assert "lengths" not in result.text


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_the_profile_is_computed_once_per_snapshot(corpus, paths, content):
    paths.schedule.mkdir(parents=True)
    path = paths.schedule / conditions.CURRENT_PROFILE
    path.write_text(content)
    corpus.write_span(1)
    snapshot = take_snapshot(corpus.config(), paths)
    profile = cached_profile(snapshot, paths.schedule)
    assert profile["rows"] == 100
    path.write_text(json.dumps({"key": snapshot.key, **profile, "rows": 7}))
    assert cached_profile(snapshot, paths.schedule)["rows"] == 7
    corpus.write_span(2)
    snapshot = take_snapshot(corpus.config(), paths)
    assert cached_profile(snapshot, paths.schedule, save=False)["rows"] == 200
    assert json.loads(path.read_text())["rows"] == 7
