from __future__ import annotations

import os

import pytest

from components.corpus_gen.sources import Group, resolve
from components.errors import UserError
from tests.components.corpus_gen.corpora import CAPTIONED, SUMMARISED, TRANSLATION


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")


def data(folder, **section):
    return {"root": str(folder), "features": TRANSLATION, **section}


def test_parallel_files_are_grouped_in_the_order_given(tmp_path):
    touch(tmp_path, "b.en", "b.de", "a.en", "a.de")
    section = data(tmp_path, train={"target": ["b.de", "a.de"], "source": ["b.en", "a.en"]})
    files = [group.files for group in resolve(section)["train"]]
    names = [tuple(os.path.basename(path) for path in pair) for pair in files]
    assert names == [("b.en", "b.de"), ("a.en", "a.de")]


def test_a_pattern_gives_its_files_sorted(tmp_path):
    touch(tmp_path, "p/10.tsv", "p/2.tsv", "p/1.tsv.gz", "p/other.txt")
    groups = resolve(data(tmp_path, train="p/*.tsv*"))["train"]
    assert [os.path.basename(g.files[0]) for g in groups] == ["1.tsv.gz", "10.tsv", "2.tsv"]
    assert {g.format for g in groups} == {"tsv"}


def test_pattern_signs_in_the_root_are_no_pattern(tmp_path):
    touch(tmp_path, "[x]/a.jsonl")
    groups = resolve(data(tmp_path / "[x]", train="*.jsonl"))["train"]
    assert groups == [Group("train", "jsonl", (str(tmp_path / "[x]" / "a.jsonl"),))]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.tsv", "tsv"), ("a.TSV.gz", "tsv"), ("a.jsonl.gz", "jsonl"), ("a.parquet", "parquet")],
)
def test_the_name_tells_the_format(tmp_path, name, kind):
    touch(tmp_path, name)
    assert resolve(data(tmp_path, train=name))["train"][0].format == kind


def test_a_given_format_stands_over_the_name(tmp_path):
    touch(tmp_path, "a.txt")
    assert resolve(data(tmp_path, train="a.txt", format="tsv"))["train"][0].format == "tsv"


def refusal(section) -> UserError:
    with pytest.raises(UserError) as caught:
        resolve(section)
    return caught.value


def test_a_missing_file_is_named_with_near_ones(tmp_path):
    touch(tmp_path, "train.de.gz", "train.en.gz")
    error = refusal(data(tmp_path, train={"source": "train.en.gz", "target": "trian.de.gz"}))
    assert "trian.de.gz" in error.message
    assert error.where == "data.train.target"
    assert "train.de.gz" in error.remedy


def test_a_missing_folder_is_named(tmp_path):
    error = refusal(data(tmp_path / "none" / "deep", train="a.tsv"))
    assert error.remedy == f"There is no folder {tmp_path / 'none'}: check `data.root`."


def test_a_missing_side_is_named(tmp_path):
    touch(tmp_path, "a.en")
    error = refusal(data(tmp_path, train={"source": "a.en"}))
    assert error.where == "data.train.target"
    assert "target side is missing" in error.message


def test_an_unknown_side_is_named_with_the_near_one(tmp_path):
    touch(tmp_path, "a.en", "a.de")
    error = refusal(data(tmp_path, train={"source": "a.en", "taget": "a.de"}))
    assert error.where == "data.train.taget"
    assert "`target`" in error.remedy


def test_sides_with_different_numbers_of_files_are_refused(tmp_path):
    touch(tmp_path, "a.en", "b.en", "a.de")
    error = refusal(data(tmp_path, train={"source": "*.en", "target": "*.de"}))
    assert "2 for source, 1 for target" in error.message


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"train": "*.tsv"}, "no file matches"),
        ({"train": "folder"}, "is a folder"),
        ({"train": "a.txt"}, "does not tell its format"),
        ({"train": "a.parquet.gz"}, "inside gzip"),
        ({"train": "a.txt", "format": "parallel"}, "a path for each side"),
        ({"train": {"source": "a.txt", "target": "a.txt"}, "format": "tsv"}, "format is tsv"),
        ({"train": []}, "list of files is empty"),
        ({"eval": "a.txt"}, "no training files"),
        ({"train": "a.txt", "format": "csv"}, "unknown format 'csv'"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, section, told):
    touch(tmp_path, "a.txt", "a.parquet.gz", "folder/b.txt")
    assert told in refusal(data(tmp_path, **section)).message


def test_an_optional_side_may_be_left_out(tmp_path):
    touch(tmp_path, "a.text", "a.summary", "a.title")
    files = {"summary": "a.summary", "text": "a.text"}
    (group,) = resolve(data(tmp_path, features=SUMMARISED, train=files))["train"]
    assert group.sides == ("text", "summary")
    assert [os.path.basename(path) for path in group.files] == ["a.text", "a.summary"]
    files["title"] = "a.title"
    (group,) = resolve(data(tmp_path, features=SUMMARISED, train=files))["train"]
    assert group.sides == ("text", "summary", "title")
    error = refusal(data(tmp_path, features=SUMMARISED, train={"title": "a.title"}))
    assert error.message == "the text side is missing: parallel files need text and summary"


def test_a_folder_of_images_must_be_there(tmp_path):
    touch(tmp_path, "a.tsv", "photos/a.jpg")
    section = data(tmp_path, features=CAPTIONED, train="a.tsv")
    assert resolve({**section, "images": "photos"})
    error = refusal({**section, "images": "photo"})
    assert (error.where, error.message) == ("data.images", f"no such folder: {tmp_path}/photo")
    assert "photos" in error.remedy
    assert "is no folder" in refusal({**section, "images": "a.tsv"}).message
