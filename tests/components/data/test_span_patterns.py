"""Paths with placeholders: files that match them, and their errors."""

import os

import pytest

from regard.components.data import span_patterns
from regard.core.errors import UserError
from tests.components.corpora import write_files


def find(folder, pattern, *names):
    write_files(folder, dict.fromkeys(names, "x\n"))
    files = span_patterns.find_span_files(str(folder), pattern, "data.train")
    return {os.path.relpath(one.path, folder): (one.span, one.name, one.version) for one in files}


def test_numbers_of_any_and_of_fixed_width(tmp_path):
    names = ("7.tsv", "007.tsv", "x.tsv", "12.tsv.gz")
    expected = {"007.tsv": (7, "7", None), "7.tsv": (7, "7", None)}
    assert find(tmp_path, "{SPAN}.tsv", *names) == expected
    assert find(tmp_path / "w", "{SPAN:3}.tsv", "007.tsv", "x.tsv") == {"007.tsv": (7, "7", None)}


def test_versions_and_folders(tmp_path):
    names = ("3/v1/a.tsv", "3/v2/a.tsv", "4/v1/a.tsv", "4/a.tsv")
    assert find(tmp_path, "{SPAN}/v{VERSION}/*.tsv", *names) == {
        "3/v1/a.tsv": (3, "3", 1),
        "3/v2/a.tsv": (3, "3", 2),
        "4/v1/a.tsv": (4, "4", 1),
    }


def test_date_is_days_since_1970(tmp_path):
    names = ("2026-11-20.tsv", "1970-01-02.tsv")
    assert find(tmp_path, "{YYYY}-{MM}-{DD}.tsv", *names) == {
        "1970-01-02.tsv": (1, "1970-01-02", None),
        "2026-11-20.tsv": (20777, "2026-11-20", None),
    }


def test_repeated_placeholder_has_one_value(tmp_path):
    names = ("3/train-3.tsv", "4/train-3.tsv", "2026/11/20261120.tsv", "2026/11/20261020.tsv")
    assert set(find(tmp_path, "{SPAN}/train-{SPAN}.tsv", *names)) == {"3/train-3.tsv"}
    assert set(find(tmp_path, "{YYYY}/{MM}/{YYYY}{MM}{DD}.tsv")) == {"2026/11/20261120.tsv"}


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("**/{SPAN}.tsv", {"1.tsv", "a/2.tsv", "a/b/3.tsv"}),
        ("a/?/{SPAN}.tsv", {"a/b/3.tsv"}),
        ("[ac]/{SPAN}.tsv", {"a/2.tsv"}),
        ("[!a]/{SPAN}.tsv", set()),
        ("./a/../{SPAN}.tsv", {"1.tsv"}),
        ("{root}/a/../{SPAN}.tsv", {"1.tsv"}),
    ],
)
def test_globs_with_placeholders(tmp_path, pattern, matches):
    pattern = pattern.replace("{root}", str(tmp_path))
    assert set(find(tmp_path, pattern, "1.tsv", "a/2.tsv", "a/b/3.tsv")) == matches


@pytest.mark.parametrize(
    ("pattern", "name", "span", "version"),
    [
        ("*{SPAN}.tsv", "part-21.tsv", 21, None),
        ("{SPAN}*.tsv", "21-a.tsv", 21, None),
        ("{SPAN}?.tsv", "21b.tsv", 21, None),
        ("1-*{VERSION}-{SPAN}.tsv", "1-v12-3.tsv", 3, 12),
        ("{SPAN}/*{SPAN}.tsv", "12/day12.tsv", 12, None),
        ("v1{SPAN}.tsv", "v112.tsv", 12, None),
        ("a[[]1]-{SPAN}.tsv", "a[1]-7.tsv", 7, None),
        ("[^a]{SPAN}.tsv", "^7.tsv", 7, None),
    ],
)
@pytest.mark.filterwarnings("error")
def test_number_next_to_a_glob_character_has_all_its_digits(tmp_path, pattern, name, span, version):
    assert find(tmp_path, pattern, name) == {name: (span, str(span), version)}


@pytest.mark.parametrize("pattern", ["[0-9]{SPAN}.tsv", "{SPAN}?.tsv"])
def test_glob_character_matches_no_digit_of_a_number(tmp_path, pattern):
    assert find(tmp_path, pattern, "112.tsv") == {}


def test_pattern_characters_in_the_root(tmp_path):
    assert set(find(tmp_path / "[x]{SPAN}", "{SPAN}.tsv", "1.tsv")) == {"1.tsv"}


@pytest.mark.parametrize(
    ("pattern", "name", "message"),
    [
        ("{SPAN:3}.tsv", "17.tsv", "17 does not have the 3 digits of {SPAN:3}"),
        ("{SPAN}-{VERSION:2}.tsv", "1-1.tsv", "1 does not have the 2 digits of {VERSION:2}"),
        ("{YYYY}-{MM}-{DD}.tsv", "2026-02-30.tsv", "2026-02-30 is not a date: day"),
    ],
)
def test_file_with_wrong_number(tmp_path, pattern, name, message):
    with pytest.raises(UserError) as caught:
        find(tmp_path, pattern, name)
    assert caught.value.message.startswith(f"{tmp_path / name}: {message}")
    assert caught.value.where == "data.train"
    assert "Rename " in caught.value.remedy


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{span}.tsv", "unknown placeholder {span}. Did you mean {SPAN}?"),
        ("{SPAN}-{VERSIO}.tsv", "unknown placeholder {VERSIO}. Did you mean {VERSION}?"),
        ("{SPAN:x}.tsv", "{SPAN:x} has an invalid width; write {SPAN:3}"),
        ("{SPAN:0}.tsv", "{SPAN:0} has an invalid width"),
        ("{YYYY:4}{MM}{DD}.tsv", "{YYYY:4} has an invalid width; write {YYYY}"),
        ("{SPAN}-{YYYY}-{MM}-{DD}.tsv", "not both {SPAN} and {YYYY}"),
        ("{YYYY}-{MM}.tsv", "{DD} is missing"),
        ("{VERSION}.tsv", "{VERSION} needs a span"),
        ("{SPAN}{VERSION}.tsv", "{SPAN}{VERSION} is ambiguous"),
    ],
)
def test_pattern_errors(pattern, message):
    assert span_patterns.is_pattern(pattern)
    assert message in span_patterns.pattern_error(pattern)


@pytest.mark.parametrize(
    ("path", "correct"),
    [
        ("*.tsv", None),
        ("{SPANS}.tsv", "{SPAN}"),
        ("{YYYY-MM-DD}.tsv", "{YYYY}-{MM}-{DD}"),
        ("{YYY}/x", "{YYYY}"),
        ("a{b}.tsv", None),
        ("{LANG}.tsv", None),
    ],
)
def test_other_braces_are_no_placeholders(path, correct):
    assert not span_patterns.is_pattern(path)
    hint = span_patterns.suggest_placeholder(path)
    assert hint is None if correct is None else hint.endswith(f"Did you mean {correct}?")


def _day(pattern, year="2026", month="01", day="30"):
    """The path of a day."""
    name = pattern.replace("{YYYY}", year).replace("{MM}", month).replace("{DD}", day)
    return name.replace("*", "a")


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("p-{YYYY}-{MM}-{DD}.tsv", "p-2026-1-29.tsv"),
        ("p-{YYYY}-{MM}-{DD}.tsv", "p-26-01-29.tsv"),
        ("p-{YYYY}{MM}{DD}.tsv", "p-2026129.tsv"),
        ("{YYYY}/{MM}/{DD}/*.tsv", "2026/1/29/a.tsv"),
        ("{YYYY}{MM}/p-{YYYY}{MM}{DD}.tsv", "202601/p-2026019.tsv"),
        ("{DD}.{MM}.{YYYY}.tsv", "9.01.2026.tsv"),
    ],
)
def test_dates_without_leading_zeros_are_not_left_out(tmp_path, pattern, name):
    with pytest.raises(UserError) as caught:
        find(tmp_path, pattern, _day(pattern), name)
    assert name in caught.value.message
    assert caught.value.where == "data.train"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("p-{YYYY}-{MM}-{DD}.tsv", "p-2026-jan-29.tsv"),
        ("*{YYYY}{MM}{DD}.tsv", "report-512.tsv"),
        ("p-{YYYY}{MM}{DD}.tsv", "p-12.tsv"),
    ],
)
def test_other_names_than_dates_are_left_out(tmp_path, pattern, name):
    assert list(find(tmp_path, pattern, _day(pattern), name)) == [_day(pattern)]


def test_a_broken_link_is_a_file_of_its_span(tmp_path):
    (tmp_path / "p-1.tsv").symlink_to(tmp_path / "nowhere.tsv")
    (tmp_path / "p-2.tsv").mkdir()
    assert list(find(tmp_path, "p-{SPAN}.tsv")) == ["p-1.tsv"]
