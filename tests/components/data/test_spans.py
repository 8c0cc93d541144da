"""Which spans a run uses, which it skips, and errors."""

import pytest

from regard.components.data.sources import find_files
from regard.components.data.spans import resolve_spans
from regard.core.errors import UserError
from tests.components.corpora import corpus_of, resolved, write_files

PAIR = {"source": "{SPAN}.en", "target": "{SPAN}.de"}


@pytest.fixture
def touch(tmp_path):
    return lambda *names: write_files(tmp_path, dict.fromkeys(names, "a\tb\n"))


@pytest.fixture
def choose(tmp_path):
    """Returns the versions of the chosen spans by name, and the notes."""

    def choose(train="{SPAN}.tsv", spans=None, **section):
        if isinstance(train, str):
            section["format"] = "tsv"
        notes = []
        corpus = corpus_of(tmp_path, train=train, spans=spans or {}, **section)
        spans = resolve_spans(corpus, notes).spans
        return {span.name: span.version for span in spans}, notes

    return choose


@pytest.fixture
def error_of(choose):
    def error_of(*arguments, **section):
        with pytest.raises(UserError) as caught:
            choose(*arguments, **section)
        return caught.value

    return error_of


def test_window_and_bounds(touch, choose):
    touch(*(f"{n}.tsv" for n in (9, 10, 11, 12)))
    assert choose()[0] == dict.fromkeys(["9", "10", "11", "12"])
    assert list(choose(spans={"window": 2})[0]) == ["11", "12"]
    assert list(choose(spans={"window": 9})[0]) == ["9", "10", "11", "12"]
    assert list(choose(spans={"first": 10, "last": 11})[0]) == ["10", "11"]
    assert list(choose(spans={"window": 1, "last": 11})[0]) == ["11"]


def test_dates(touch, choose):
    touch("30.11.2026.tsv", "01.12.2026.tsv", "02.12.2026.tsv")
    train = "{DD}.{MM}.{YYYY}.tsv"
    assert list(choose(train)[0]) == ["2026-11-30", "2026-12-01", "2026-12-02"]
    assert list(choose(train, {"last": "2026-12-01"})[0]) == ["2026-11-30", "2026-12-01"]


def test_newest_version_of_each_span(touch, choose):
    touch("1-1.tsv", "1-2.tsv", "1-10.tsv", "2-1.tsv")
    assert choose("{SPAN}-{VERSION}.tsv")[0] == {"1": 10, "2": 1}


def test_version_must_be_in_all_patterns(touch, choose):
    touch("1-1.en", "1-1.de", "1-2.en", "eval-1.en", "eval-1.de")
    pair = {"source": "{SPAN}-{VERSION}.en", "target": "{SPAN}-{VERSION}.de"}
    followed = {"source": "eval-{SPAN}.en", "target": "eval-{SPAN}.de"}
    chosen, (note,) = choose(pair, eval=followed, test=followed)
    assert chosen == {"1": 1}
    assert note.startswith("version 2 of span 1 is skipped: ")
    assert note.endswith("1-2.de is missing; version 1 is used")


def test_last_span_is_skipped_while_it_is_written(touch, choose):
    touch("1.en", "1.de", "2.en", "2.de", "3.en")
    chosen, (note,) = choose(PAIR)
    assert list(chosen) == ["1", "2"]
    assert "span 3 is skipped" in note
    assert "3.de is missing" in note
    touch("3.de")
    assert choose(PAIR) == ({"1": None, "2": None, "3": None}, [])


def test_missing_side_of_a_middle_span(touch, error_of, choose, tmp_path):
    touch("1.en", "1.de", "2.en", "3.en", "3.de")
    error = error_of(PAIR)
    assert error.message == f"span 2 is incomplete: {tmp_path}/2.de is missing"
    assert "data.spans.first" in error.remedy
    for older in ({"first": 3}, {"window": 1}):
        assert choose(PAIR, older)[0] == {"3": None}  # older spans need not be complete


@pytest.mark.parametrize("spans", [{}, {"window": 3}, {"first": 1}, {"window": 2, "replay": 0.5}])
def test_oldest_span_is_not_skipped_silently(touch, error_of, spans):
    touch("1.en", "2.en", "2.de", "3.en", "3.de")
    error = error_of(PAIR, spans)
    assert error.where == "data.train.target"
    assert "span 1 is incomplete" in error.message


def test_incomplete_newer_version_of_a_middle_span(touch, choose):
    pair = {"source": "{SPAN}-{VERSION}.en", "target": "{SPAN}-{VERSION}.de"}
    touch(*(f"{n}-1.{side}" for n in (1, 2, 3) for side in ("en", "de")), "2-2.en")
    chosen, (note,) = choose(pair)
    assert chosen == {"1": 1, "2": 1, "3": 1}
    assert note.startswith("version 2 of span 2 is skipped: ")


def test_no_complete_span(touch, error_of):
    touch("1.en", "2.de")
    assert "span 1 is incomplete" in error_of(PAIR).message


def test_marker(touch, choose):
    spans = {"marker": "_SUCCESS"}
    touch("1/a.tsv", "2/a.tsv", "2/b.tsv", "3/a.tsv", "1/_SUCCESS", "3/_SUCCESS")
    chosen, (note,) = choose("{SPAN}/*.tsv", spans)
    assert list(chosen) == ["1", "3"]
    assert "2/_SUCCESS is missing" in note


def test_marker_is_not_data(touch, tmp_path):
    touch("1/a.tsv", "1/_SUCCESS")
    section = {"train": "{SPAN}/*", "format": "tsv", "spans": {"marker": "_SUCCESS"}}
    (group,) = find_files(resolved(tmp_path, **section))["train"]
    assert group.files == (f"{tmp_path}/1/a.tsv",)


def test_each_folder_of_a_span_needs_a_marker(touch, choose, error_of):
    pair = {"source": "en/{SPAN}/*", "target": "de/{SPAN}/*"}
    touch("en/1/a", "en/1/_SUCCESS", "de/1/a", "de/1/_SUCCESS", "en/2/a", "en/2/_SUCCESS")
    chosen, (note,) = choose(pair, {"marker": "_SUCCESS"})
    assert list(chosen) == ["1"]
    assert note.endswith("de/2/_SUCCESS is missing")
    touch("de/2/_SUCCESS")
    assert "span 2 is incomplete" in error_of(pair, {"marker": "_SUCCESS"}).message


def test_marker_with_placeholders(touch, choose):
    touch("1-1.tsv", "1-2.tsv", "done.1-1")
    chosen, (note,) = choose("{SPAN}-{VERSION}.tsv", {"marker": "done.{SPAN}-{VERSION}"})
    assert chosen == {"1": 1}
    assert "done.1-2 is missing; version 1 is used" in note


def test_exclude(touch, choose, error_of):
    touch("1.tsv", "2.tsv", "3.tsv", "4.tsv", "2026-02-27.txt", "2026-02-28.txt")
    assert list(choose(spans={"exclude": [3], "window": 2})[0]) == ["2", "4"]
    chosen, notes = choose(spans={"exclude": [4, 9]})
    assert list(chosen) == ["1", "2", "3"]
    assert notes == ["data.spans.exclude: span 9 does not exist"]
    error = error_of(spans={"exclude": [1, 2, 3, 4]})
    assert error.where == "data.spans.exclude"
    assert error.message == "Selects none of the 4 spans, 1 to 4"
    chosen, _ = choose("{YYYY}-{MM}-{DD}.txt", {"exclude": ["2026-02-28"]})
    assert list(chosen) == ["2026-02-27"]


def test_one_span_twice_is_refused(touch, error_of):
    touch("7.tsv", "07.tsv")
    error = error_of()
    assert "07.tsv and " in error.message
    assert "are both span 7" in error.message
    assert "{SPAN:3}" in error.remedy


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("trian-{SPAN}.tsv", "Did you mean train-1.tsv?"),
        ("days/{SPAN}/a.tsv", "The folder {root}/days contains x."),
        ("gone/{SPAN}.tsv", "The folder {root}/gone does not exist. Check `data.root`."),
    ],
)
def test_pattern_without_files(touch, error_of, tmp_path, pattern, remedy):
    touch("train-1.tsv", "days/x")
    error = error_of(pattern)
    assert error.message == f"No file matches {tmp_path}/{pattern}"
    assert error.where == "data.train"
    assert error.remedy == remedy.format(root=tmp_path)


@pytest.mark.parametrize(
    ("spans", "where"),
    [({"first": 10**9}, "first"), ({"last": 0}, "last"), ({"first": 9, "last": 9}, "first")],
)
def test_bounds_that_select_nothing(touch, error_of, spans, where):
    touch("1.tsv", "2.tsv")
    error = error_of("{SPAN}.tsv", spans)
    assert error.where == f"data.spans.{where}"
    assert error.message == "Selects none of the 2 spans, 1 to 2"


def test_resolved_corpus_stays_the_same(touch, tmp_path):
    touch("1.tsv", "2.tsv")
    corpus = resolved(tmp_path, train="{SPAN}.tsv", spans={"window": 2})
    touch("3.tsv")
    assert resolve_spans(corpus) is corpus
    assert [group.span for group in find_files(corpus)["train"]] == ["1", "2"]


def test_corpus_without_patterns_has_no_spans(touch, tmp_path):
    touch("1.tsv")
    corpus = resolved(tmp_path, train="1.tsv")
    assert corpus.spans == ()
    assert find_files(corpus)["train"][0].span is None


def test_middle_span_without_eval(touch, error_of):
    touch("1.tsv", "2.tsv", "3.tsv", "eval-1.tsv", "eval-3.tsv", "test.tsv")
    error = error_of(eval="eval-{SPAN}.tsv", test="test.tsv")
    assert error.where == "data.eval"
    assert "eval-2.tsv is missing" in error.message


def test_home_is_expanded(tmp_path, monkeypatch, error_of):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert error_of("~/none/{SPAN}.tsv").message == f"No file matches {tmp_path}/none/{{SPAN}}.tsv"
