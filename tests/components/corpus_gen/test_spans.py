"""Which spans are taken, which are left out, and what is refused."""

from __future__ import annotations

import os

import pytest

from components.corpus_gen.sources import resolve
from components.corpus_gen.spans import settled
from components.errors import UserError
from tests.components.corpus_gen.corpora import TRANSLATION

PAIR = {"source": "{SPAN}.en", "target": "{SPAN}.de"}


@pytest.fixture
def touch(tmp_path):
    def touch(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("a\tb\n")

    return touch


@pytest.fixture
def take(tmp_path):
    """The names of the spans that a section takes, their versions, and the notes."""

    def take(train="{SPAN}.tsv", spans=None, **section):
        notes = []
        found = settled(
            {"root": str(tmp_path), "features": TRANSLATION, "train": train, "spans": spans or {}}
            | section,
            notes,
        )
        taken = found["spans"]["taken"]
        return {one["name"]: one["version"] for one in taken}, notes

    return take


@pytest.fixture
def refused(take):
    def refused(*arguments, **section):
        with pytest.raises(UserError) as caught:
            take(*arguments, **section)
        return caught.value

    return refused


def test_all_of_them_or_the_newest(touch, take):
    touch(*(f"{n}.tsv" for n in (9, 10, 11, 12)))
    assert take()[0] == dict.fromkeys(["9", "10", "11", "12"])
    assert list(take(spans={"window": 2})[0]) == ["11", "12"]
    assert list(take(spans={"window": 9})[0]) == ["9", "10", "11", "12"]
    assert list(take(spans={"first": 10, "last": 11})[0]) == ["10", "11"]
    assert list(take(spans={"window": 1, "last": 11})[0]) == ["11"]


def test_dates_are_in_order_and_bounded_by_dates(touch, take):
    touch("30.11.2026.tsv", "01.12.2026.tsv", "02.12.2026.tsv")
    train = "{DD}.{MM}.{YYYY}.tsv"
    assert list(take(train)[0]) == ["2026-11-30", "2026-12-01", "2026-12-02"]
    assert list(take(train, {"last": "2026-12-01"})[0]) == ["2026-11-30", "2026-12-01"]


def test_the_newest_version_of_each_span(touch, take):
    touch("1-1.tsv", "1-2.tsv", "1-10.tsv", "2-1.tsv")
    assert take("{SPAN}-{VERSION}.tsv")[0] == {"1": 10, "2": 1}


def test_a_version_counts_when_all_patterns_have_it(touch, take):
    touch("1-1.en", "1-1.de", "1-2.en", "eval-1.en", "eval-1.de")
    pair = {"source": "{SPAN}-{VERSION}.en", "target": "{SPAN}-{VERSION}.de"}
    followed = {"source": "eval-{SPAN}.en", "target": "eval-{SPAN}.de"}
    taken, (note,) = take(pair, eval=followed, test=followed)
    assert taken == {"1": 1}
    assert note.startswith("version 2 of span 1 is left out: ")
    assert note.endswith("1-2.de is not there; version 1 is taken")


def test_the_last_span_is_left_out_while_it_is_written(touch, take):
    touch("1.en", "1.de", "2.en", "2.de", "3.en")
    taken, (note,) = take(PAIR)
    assert list(taken) == ["1", "2"]
    assert "span 3 is left out" in note
    assert "3.de is not there" in note
    touch("3.de")
    assert take(PAIR) == ({"1": None, "2": None, "3": None}, [])


def test_a_side_that_lacks_a_span_in_the_middle_is_named(touch, refused, take, tmp_path):
    touch("1.en", "1.de", "2.en", "3.en", "3.de")
    error = refused(PAIR)
    assert error.where == "data.train.target"
    assert error.message == f"span 2 is not whole: {tmp_path}/2.de is not there"
    assert "data.spans.first" in error.remedy
    assert take(PAIR, {"first": 3})[0] == {"3": None}
    assert take(PAIR, {"window": 1})[0] == {"3": None}  # what is not wanted need not be whole


@pytest.mark.parametrize("spans", [{}, {"window": 3}, {"first": 1}, {"window": 2, "replay": 0.5}])
def test_the_oldest_span_is_not_left_out_silently(touch, refused, spans):
    touch("1.en", "2.en", "2.de", "3.en", "3.de")
    error = refused(PAIR, spans)
    assert error.where == "data.train.target"
    assert "span 1 is not whole" in error.message


def test_what_is_older_than_a_full_window_need_not_be_whole(touch, take):
    touch("1.en", "2.en", "2.de", "3.en", "3.de")
    assert take(PAIR, {"window": 2}) == ({"2": None, "3": None}, [])


def test_the_oldest_span_that_lacks_its_eval_alone_is_named(touch, refused):
    touch("1.tsv", "2.tsv", "eval-2.tsv", "test.tsv")
    assert refused(eval="eval-{SPAN}.tsv", test="test.tsv").where == "data.eval"


def test_a_newer_version_without_a_side_gives_way_in_the_middle(touch, take):
    pair = {"source": "{SPAN}-{VERSION}.en", "target": "{SPAN}-{VERSION}.de"}
    touch(*(f"{n}-1.{side}" for n in (1, 2, 3) for side in ("en", "de")), "2-2.en")
    taken, (note,) = take(pair)
    assert taken == {"1": 1, "2": 1, "3": 1}
    assert note.startswith("version 2 of span 2 is left out: ")


def test_a_span_without_eval_is_named(touch, refused):
    touch("1.tsv", "2.tsv", "3.tsv", "eval-1.tsv", "eval-3.tsv", "test.tsv")
    error = refused(eval="eval-{SPAN}.tsv", test="test.tsv")
    assert error.where == "data.eval"
    assert "eval-2.tsv is not there" in error.message


def test_nothing_that_is_whole(touch, refused):
    touch("1.en", "2.de")
    assert refused(PAIR).where == "data.train.target"
    assert "span 1 is not whole" in refused(PAIR).message


def test_a_marker_says_when_a_span_is_whole(touch, take, refused):
    spans = {"marker": "_SUCCESS"}
    touch("1/a.tsv", "2/a.tsv", "2/b.tsv", "3/a.tsv", "1/_SUCCESS", "3/_SUCCESS")
    taken, notes = take("{SPAN}/*.tsv", spans)
    assert list(taken) == ["1", "3"]
    (note,) = notes  # what is left out is not missing besides
    assert "2/_SUCCESS is not there" in note


def test_what_is_marked_must_be_whole_also_where_it_is_the_newest(touch, refused):
    pair = {"source": "{SPAN}/*.en", "target": "{SPAN}/*.de"}
    touch("1/a.en", "1/a.de", "1/_SUCCESS", "2/a.en", "2/_SUCCESS")
    error = refused(pair, {"marker": "_SUCCESS"})
    assert error.where == "data.train.target"
    assert "span 2 is not whole" in error.message


def test_a_marker_is_no_data(touch, take, tmp_path):
    touch("1/a.tsv", "1/_SUCCESS", "2/a.tsv", "2/_SUCCESS")
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "{SPAN}/*"}
    found = resolve({**data, "spans": {"marker": "_SUCCESS"}})["train"]
    assert [os.path.relpath(g.files[0], tmp_path) for g in found] == ["1/a.tsv", "2/a.tsv"]


def test_each_folder_of_a_span_has_a_marker_of_its_own(touch, take, refused):
    pair = {"source": "en/{SPAN}/*", "target": "de/{SPAN}/*"}
    touch("en/1/a", "en/1/_SUCCESS", "de/1/a", "de/1/_SUCCESS", "en/2/a", "en/2/_SUCCESS")
    taken, (note,) = take(pair, {"marker": "_SUCCESS"})
    assert list(taken) == ["1"]
    assert note.endswith("de/2/_SUCCESS is not there")
    touch("de/2/_SUCCESS")
    assert "span 2 is not whole" in refused(pair, {"marker": "_SUCCESS"}).message


def test_a_marker_may_have_placeholders(touch, take):
    touch("1-1.tsv", "1-2.tsv", "done.1-1")
    taken, (note,) = take("{SPAN}-{VERSION}.tsv", {"marker": "done.{SPAN}-{VERSION}"})
    assert taken == {"1": 1}
    assert "done.1-2 is not there; version 1 is taken" in note


def test_gaps_are_told(touch, take):
    touch("1.tsv", "2.tsv", "4.tsv")
    assert take()[1] == ["1 span is missing between 1 and 4: 3"]
    touch("12.tsv", *(f"{n}.tsv" for n in range(14, 20)))
    told = "9 spans are missing between 1 and 19: 3, 5, 6, 7, 8 and 4 more"
    assert take()[1] == [told]
    touch("2026-02-27.txt", "2026-03-01.txt")
    assert "2026-02-28" in take("{YYYY}-{MM}-{DD}.txt")[1][0]


def test_a_span_is_left_out_by_its_number_or_date_and_is_no_gap(touch, take, refused):
    touch("1.tsv", "2.tsv", "3.tsv", "4.tsv")
    assert take(spans={"without": [3]}) == (dict.fromkeys(["1", "2", "4"]), [])
    assert list(take(spans={"without": [3], "window": 2})[0]) == ["2", "4"]
    taken, notes = take(spans={"without": [4, 9]})
    assert list(taken) == ["1", "2", "3"]
    assert notes == ["data.spans.without: there is no span 9"]
    error = refused(spans={"without": [1, 2, 3, 4]})
    assert error.where == "data.spans.without"
    assert error.message == "leaves none of the 4 spans, 1 to 4"
    touch("2026-02-27.txt", "2026-02-28.txt")
    taken, _ = take("{YYYY}-{MM}-{DD}.txt", {"without": ["2026-02-28"]})
    assert list(taken) == ["2026-02-27"]


def test_numbers_that_do_not_count_by_ones_have_no_gaps(touch, take):
    touch("1700000000000.tsv", "1700000086400.tsv", "2026-11-15.txt", "2026-11-22.txt")
    assert take()[1] == []
    assert take("{YYYY}-{MM}-{DD}.txt")[1] == []


def test_one_span_twice_is_refused(touch, refused):
    touch("7.tsv", "07.tsv")
    error = refused()
    assert "07.tsv and " in error.message
    assert "are both span 7" in error.message
    assert "{SPAN:3}" in error.remedy


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("trian-{SPAN}.tsv", "Did you mean train-1.tsv?"),
        ("days/{SPAN}/a.tsv", "The folder {root}/days has: x."),
        ("gone/{SPAN}.tsv", "There is no folder {root}/gone: check `data.root`."),
    ],
)
def test_a_pattern_that_nothing_fits(touch, refused, tmp_path, pattern, remedy):
    touch("train-1.tsv", "days/x")
    error = refused(pattern)
    assert error.message == f"no file fits {tmp_path}/{pattern}"
    assert error.where == "data.train"
    assert error.remedy == remedy.format(root=tmp_path)


@pytest.mark.parametrize(
    ("spans", "where"),
    [({"first": 10**9}, "first"), ({"last": 0}, "last"), ({"first": 9, "last": 9}, "first")],
)
def test_bounds_that_leave_nothing(touch, refused, spans, where):
    touch("1.tsv", "2.tsv")
    error = refused("{SPAN}.tsv", spans)
    assert error.where == f"data.spans.{where}"
    assert error.message == "leaves none of the 2 spans, 1 to 2"


def test_what_is_wrong_with_the_section_is_told_before_files_are_looked_for(refused):
    error = refused({"source": "{SPAN}.en", "target": "all.de"})
    assert error.where == "data.train.target"
    assert error.message == "all sides need the placeholders of data.train.source"


def test_files_without_placeholders_belong_to_every_run(touch, tmp_path):
    touch("base.tsv", "1.tsv", "2.tsv", "test.tsv")
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": ["base.tsv", "{SPAN}.tsv"]}
    data |= {"eval": "test.tsv", "test": "test.tsv", "spans": {"test_share": 0.2}}
    groups = resolve(data)
    told = [(os.path.basename(g.files[0]), g.span, g.test_share) for g in groups["train"]]
    assert told == [("base.tsv", "fixed", 0.0), ("1.tsv", "1", 0.0), ("2.tsv", "2", 0.2)]
    assert [(g.span, g.test_share) for g in groups["test"]] == [("fixed", 0.0)]


def test_sides_of_a_span_have_as_many_files_each(touch, tmp_path):
    touch("1/a.en", "1/b.en", "1/a.de")
    pair = {"source": "{SPAN}/*.en", "target": "{SPAN}/*.de"}
    with pytest.raises(UserError, match="span 1: the sides have different numbers of files: 2 for"):
        resolve({"root": str(tmp_path), "features": TRANSLATION, "train": pair})


def test_a_file_that_two_paths_name_is_refused(touch, tmp_path):
    touch("1.tsv", "2.tsv")
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": ["*.tsv", "{SPAN}.tsv"]}
    with pytest.raises(UserError, match=r"1\.tsv is named twice") as caught:
        resolve(data)
    assert caught.value.where == "data.train"


@pytest.mark.parametrize("paths", [["*.tsv", "./{SPAN}.tsv"], ["{SPAN}.tsv", "a/../{SPAN}.tsv"]])
def test_a_file_is_the_same_however_its_path_is_written(touch, tmp_path, paths):
    touch("1.tsv", "2.tsv", "a/x")
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": paths}
    with pytest.raises(UserError, match=r"1\.tsv is named twice"):
        resolve(data)


def test_a_file_behind_a_link_is_the_same(touch, tmp_path):
    touch("a/1.tsv", "a/2.tsv")
    (tmp_path / "a/again").symlink_to(tmp_path / "a")
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "**/{SPAN}.tsv"}
    with pytest.raises(UserError, match=r"1\.tsv is named twice"):
        resolve(data)


def test_one_source_with_two_references_is_listed_twice(touch, tmp_path):
    touch("1.en", "1.a.de", "1.b.de")
    pair = {"source": ["{SPAN}.en", "{SPAN}.en"], "target": ["{SPAN}.a.de", "{SPAN}.b.de"]}
    groups = resolve({"root": str(tmp_path), "features": TRANSLATION, "train": pair})["train"]
    told = [tuple(map(os.path.basename, group.files)) for group in groups]
    assert told == [("1.en", "1.a.de"), ("1.en", "1.b.de")]


def test_what_is_settled_stays_though_more_arrives(touch, tmp_path):
    touch("1.tsv", "2.tsv")
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "{SPAN}.tsv"}
    once = settled({**data, "spans": {"window": 2, "first": None}})
    touch("3.tsv")
    assert settled(once) == once
    assert [g.span for g in resolve(once)["train"]] == ["1", "2"]
    assert [g.span for g in resolve(data)["train"]] == ["1", "2", "3"]


def test_a_section_without_patterns_has_no_spans(touch, tmp_path):
    touch("1.tsv")
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "1.tsv"}
    assert settled({**data, "spans": {"window": None, "test_share": 0.0}}) == data
    assert resolve(data)["train"][0].span is None


def test_a_path_below_the_home_is_shown_as_it_is(tmp_path, monkeypatch, refused):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert refused("~/none/{SPAN}.tsv").message == f"no file fits {tmp_path}/none/{{SPAN}}.tsv"
