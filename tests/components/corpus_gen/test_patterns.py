"""Which files fit a path with placeholders, and what their names say."""

from __future__ import annotations

import os

import pytest

from components.corpus_gen import patterns
from components.errors import UserError


def found(folder, pattern, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    hits = patterns.find(str(folder), pattern, "data.train")
    return {os.path.relpath(hit.path, folder): (hit.span, hit.name, hit.version) for hit in hits}


def test_numbers_of_any_width_and_of_one(tmp_path):
    names = ("7.tsv", "007.tsv", "12.tsv", "x.tsv", "12.tsv.gz")
    assert found(tmp_path, "{SPAN}.tsv", *names) == {
        "007.tsv": (7, "7", None),
        "12.tsv": (12, "12", None),
        "7.tsv": (7, "7", None),
    }
    (tmp_path / "w").mkdir()
    assert found(tmp_path / "w", "{SPAN:3}.tsv", "007.tsv", "x.tsv") == {"007.tsv": (7, "7", None)}


def test_versions_and_folders(tmp_path):
    names = ("3/v1/a.tsv", "3/v2/a.tsv", "4/v1/a.tsv", "4/a.tsv")
    assert found(tmp_path, "{SPAN}/v{VERSION}/*.tsv", *names) == {
        "3/v1/a.tsv": (3, "3", 1),
        "3/v2/a.tsv": (3, "3", 2),
        "4/v1/a.tsv": (4, "4", 1),
    }


def test_a_date_is_the_days_since_1970(tmp_path):
    names = ("2026-11-20.tsv", "1970-01-02.tsv")
    assert found(tmp_path, "{YYYY}-{MM}-{DD}.tsv", *names) == {
        "1970-01-02.tsv": (1, "1970-01-02", None),
        "2026-11-20.tsv": (20777, "2026-11-20", None),
    }
    assert patterns.number_of("2026-11-20", True) == 20777
    assert patterns.name_of(20777, True) == "2026-11-20"


def test_a_placeholder_that_stands_twice_means_the_same(tmp_path):
    names = ("3/train-3.tsv", "4/train-3.tsv", "2026/11/20261120.tsv", "2026/11/20261020.tsv")
    assert set(found(tmp_path, "{SPAN}/train-{SPAN}.tsv", *names)) == {"3/train-3.tsv"}
    assert set(found(tmp_path, "{YYYY}/{MM}/{YYYY}{MM}{DD}.tsv")) == {"2026/11/20261120.tsv"}


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("**/{SPAN}.tsv", {"1.tsv", "a/2.tsv", "a/b/3.tsv"}),
        ("a/?/{SPAN}.tsv", {"a/b/3.tsv"}),
        ("[ac]/{SPAN}.tsv", {"a/2.tsv"}),
        ("[!a]/{SPAN}.tsv", set()),
        ("./a/../{SPAN}.tsv", {"1.tsv"}),
    ],
)
def test_glob_signs_go_with_placeholders(tmp_path, pattern, fits):
    assert set(found(tmp_path, pattern, "1.tsv", "a/2.tsv", "a/b/3.tsv")) == fits


@pytest.mark.parametrize(
    ("pattern", "name", "span", "version"),
    [
        ("*{SPAN}.tsv", "part-21.tsv", 21, None),
        ("*{SPAN:2}.tsv", "part-21.tsv", 21, None),
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
def test_a_number_has_all_its_digits_beside_a_glob_sign(tmp_path, pattern, name, span, version):
    assert found(tmp_path, pattern, name) == {name: (span, str(span), version)}


@pytest.mark.parametrize("pattern", ["[0-9]{SPAN}.tsv", "{SPAN}?.tsv"])
def test_a_glob_sign_takes_no_digit_of_a_number(tmp_path, pattern):
    assert found(tmp_path, pattern, "112.tsv") == {}


def test_folders_that_go_up_and_down_in_an_absolute_path(tmp_path):
    assert set(found(tmp_path, f"{tmp_path}/a/../{{SPAN}}.tsv", "1.tsv", "a/x")) == {"1.tsv"}


def test_signs_of_patterns_in_the_root_are_none(tmp_path):
    assert set(found(tmp_path / "[x]{SPAN}", "{SPAN}.tsv", "1.tsv")) == {"1.tsv"}


@pytest.mark.parametrize(
    ("pattern", "name", "told"),
    [
        ("{SPAN:3}.tsv", "17.tsv", "17 has not the 3 digits of {SPAN:3}"),
        ("{SPAN:1}.tsv", "17.tsv", "17 has not the 1 digit of {SPAN:1}"),
        ("{SPAN}-{VERSION:2}.tsv", "1-1.tsv", "1 has not the 2 digits of {VERSION:2}"),
        ("{YYYY}-{MM}-{DD}.tsv", "2026-02-30.tsv", "2026-02-30 is no date: day"),
    ],
)
def test_a_file_with_a_wrong_number_is_named(tmp_path, pattern, name, told):
    (tmp_path / name).write_text("x\n")
    with pytest.raises(UserError) as caught:
        patterns.find(str(tmp_path), pattern, "data.train.source")
    assert caught.value.message.startswith(f"{tmp_path / name}: {told}")
    assert caught.value.where == "data.train.source"
    assert "Rename the file" in caught.value.remedy


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("{span}.tsv", "no placeholder {span}; did you mean {SPAN}?"),
        ("{SPAN}-{VERSIO}.tsv", "no placeholder {VERSIO}; did you mean {VERSION}?"),
        ("{SPAN:x}.tsv", "{SPAN:x} has a width that cannot be; write {SPAN:3}"),
        ("{SPAN:0}.tsv", "{SPAN:0} has a width that cannot be"),
        ("{YYYY:4}{MM}{DD}.tsv", "{YYYY:4} has a width that cannot be; write {YYYY}"),
        ("{SPAN}-{YYYY}-{MM}-{DD}.tsv", "not both {SPAN} and {YYYY}"),
        ("{YYYY}-{MM}.tsv", "{DD} is missing"),
        ("{VERSION}.tsv", "{VERSION} is of a span"),
        ("{SPAN}{VERSION}.tsv", "{SPAN}{VERSION} cannot be told apart"),
    ],
)
def test_what_is_wrong_with_a_pattern(pattern, told):
    assert patterns.is_pattern(pattern)
    assert told in patterns.wrong(pattern)


@pytest.mark.parametrize("path", ["train.tsv", "a{b}.tsv", "{LANG}.tsv", "*.tsv"])
def test_other_braces_are_part_of_a_name(path):
    assert not patterns.is_pattern(path)


@pytest.mark.parametrize(
    "path", ["{SPAN}", "{SPAN:2}/{VERSION}", "{DD}.{MM}.{YYYY}", "{YYYY}{MM}{DD}"]
)
def test_right_patterns(path):
    assert patterns.is_pattern(path)
    assert patterns.wrong(path) is None


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("{SPANS}.tsv", "{SPAN}"),
        ("{YYYY-MM-DD}.tsv", "{YYYY}-{MM}-{DD}"),
        ("{YYY}/x", "{YYYY}"),
        ("a{b}.tsv", None),
        ("{LANG}.tsv", None),
    ],
)
def test_what_braces_may_have_been_meant_as(path, right):
    told = patterns.meant(path)
    assert told is None if right is None else told.endswith(f"did you mean {right}?")
