"""The files of a corpus, and messages about missing ones."""

import json
import os

import pytest

from regard.components.data.sources import Corpus, FileGroup, expand_all, find_files
from regard.core.errors import UserError
from tests.components.corpora import CAPTIONED, SUMMARISED, resolved, write_files


def touch(folder, *names):
    write_files(folder, dict.fromkeys(names, "x\n"))


def groups(*arguments, **section):
    return find_files(resolved(*arguments, **section))["train"]


def error_of(*arguments, **section) -> UserError:
    with pytest.raises(UserError) as caught:
        find_files(resolved(*arguments, **section))
    return caught.value


def names(files):
    return [os.path.basename(path) for path in files]


def test_parallel_files_keep_their_order(tmp_path):
    touch(tmp_path, "b.en", "b.de", "a.en", "a.de")
    train = {"target": ["b.de", "a.de"], "source": ["b.en", "a.en"]}
    pairs = [names(group.files) for group in groups(tmp_path, train=train)]
    assert pairs == [["b.en", "b.de"], ["a.en", "a.de"]]


def test_globs_give_sorted_files(tmp_path):
    touch(tmp_path, "p/10.tsv", "p/2.tsv", "p/1.tsv", "p/other.txt", "p/3.tsv/x")
    file_groups = groups(tmp_path, train="p/*.tsv")
    assert [names(group.files) for group in file_groups] == [["1.tsv"], ["10.tsv"], ["2.tsv"]]


@pytest.mark.parametrize(("folder", "name"), [("[x]", "*.jsonl"), ("y", "a[1].jsonl")])
def test_glob_characters_in_names(tmp_path, folder, name):
    touch(tmp_path, f"{folder}/a[1].jsonl")
    path = str(tmp_path / folder / "a[1].jsonl")
    assert groups(tmp_path / folder, train=name) == [FileGroup("train", "jsonl", (path,))]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[("a.tsv", "tsv"), ("a.TSV.gz", "tsv"), ("a.jsonl.gz", "jsonl"), ("a.parquet", "parquet")],
        *[("a.csv.gz", "csv"), ("a.arrow", "arrow")],
    ],
)
def test_format_of_names(tmp_path, name, kind):
    touch(tmp_path, name)
    assert groups(tmp_path, train=name)[0].format == kind


LANGUAGES = {"source": "en", "target": "fr"}


@pytest.mark.parametrize(
    ("train", "pairs"),
    [
        ("corpus", [["corpus.en", "corpus.fr"]]),
        ("news-v7.fr-en", [["news-v7.fr-en.en", "news-v7.fr-en.fr"]]),
        ("zip.gz", [["zip.en.gz", "zip.fr.gz"]]),
        (["corpus", "zip.gz"], [["corpus.en", "corpus.fr"], ["zip.en.gz", "zip.fr.gz"]]),
        ("s-{SPAN}", [["s-1.en", "s-1.fr"], ["s-2.en", "s-2.fr"]]),
    ],
)
def test_files_of_languages(tmp_path, train, pairs):
    touch(tmp_path, *(name for pair in pairs for name in pair))
    read = groups(tmp_path, train=train, columns=LANGUAGES)
    assert [names(group.files) for group in read] == pairs
    assert {(group.format, group.sides) for group in read} == {("parallel", ("source", "target"))}


def test_missing_file_of_a_language(tmp_path):
    touch(tmp_path, "corpus.en", "corpus.de")
    error = error_of(tmp_path, train="corpus", columns=LANGUAGES)
    assert error.where == "data.train.target"
    assert error.message == f"No such file: {tmp_path}/corpus.fr"


def save_dataset(folder, *files):
    state = {"_data_files": [{"filename": name} for name in files]}
    touch(folder, *(os.path.basename(name) for name in files))
    write_files(folder, {"state.json": json.dumps(state), "dataset_info.json": "{}"})


@pytest.mark.parametrize("columns", [None, LANGUAGES])
def test_folder_of_a_dataset(tmp_path, columns):
    save_dataset(tmp_path / "train", "data-2.arrow", "data-1.arrow", "../../x.arrow")
    touch(tmp_path, "train/cache-1.arrow")
    read = groups(tmp_path, train="train", columns=columns)
    assert [names(group.files) for group in read] == [
        ["data-2.arrow"],
        ["data-1.arrow"],
        ["x.arrow"],
    ]
    assert {group.format for group in read} == {"arrow"}
    assert all(group.files[0].startswith(f"{tmp_path}/train/") for group in read)


@pytest.mark.parametrize("files", ["x", [3, "a"], {}, [{}], None])
def test_folder_of_a_damaged_dataset(tmp_path, files):
    write_files(tmp_path, {"train/state.json": json.dumps({"_data_files": files})})
    assert error_of(tmp_path, train="train").where == "data.train"


def test_missing_file_with_similar_name(tmp_path):
    touch(tmp_path, "train.de.gz", "train.en.gz")
    error = error_of(tmp_path, train={"source": "train.en.gz", "target": "trian.de.gz"})
    assert error.where == "data.train.target"
    assert error.message == f"No such file: {tmp_path}/trian.de.gz"
    assert "train.de.gz" in error.remedy


@pytest.mark.parametrize(
    ("path", "message", "remedy"),
    [
        ("folder", "is a folder", "Name its files, for example `folder/*.tsv`, or a"),
        ("x*.tsv", "No file matches", "The folder {root} contains folder."),
        ("folder/a.tsv", "No such file", "The folder {root}/folder is empty."),
        ("none/deep/a.tsv", "No such file", "The folder {root}/none does not exist. Check `data"),
        ("{YYYY-MM-DD}.tsv", "No such file", "Did you mean {{YYYY}}-{{MM}}-{{DD}}?"),
        ("{SPANS}.tsv", "No such file", "Did you mean {{SPAN}}?"),
        ("$HOME/a.tsv", "No such file", "Write ${{HOME}} for the environment variable HOME."),
    ],
)
def test_missing_files(tmp_path, path, message, remedy):
    (tmp_path / "folder").mkdir()
    error = error_of(tmp_path, train=path, format="tsv")
    assert error.where == "data.train"
    assert message in error.message
    assert remedy.format(root=tmp_path) in error.remedy


def test_sides_with_different_numbers_of_files(tmp_path):
    touch(tmp_path, "a.en", "b.en", "a.de")
    error = error_of(tmp_path, train={"source": "*.en", "target": "*.de"})
    assert error.message == "The sides have different numbers of files: source 2, target 1"


def test_optional_side(tmp_path):
    touch(tmp_path, "a.text", "a.summary", "a.title")
    files = {"summary": "a.summary", "text": "a.text"}
    (group,) = groups(tmp_path, SUMMARISED, train=files)
    assert group.sides == ("text", "summary")
    assert names(group.files) == ["a.text", "a.summary"]
    (group,) = groups(tmp_path, SUMMARISED, train={**files, "title": "a.title"})
    assert group.sides == ("text", "summary", "title")


def test_folder_of_images(tmp_path):
    touch(tmp_path, "a.tsv", "photos/a.jpg")
    assert groups(tmp_path, CAPTIONED, train="a.tsv", images="photos")
    error = error_of(tmp_path, CAPTIONED, train="a.tsv", images="photo")
    assert (error.where, error.message) == ("data.images", f"no such folder: {tmp_path}/photo")
    assert "photos" in error.remedy
    error = error_of(tmp_path, CAPTIONED, train="a.tsv", images="a.tsv")
    assert "is not a folder" in error.message


def test_groups_of_spans(tmp_path):
    touch(tmp_path, "base.tsv", "1.tsv", "2.tsv", "test.tsv")
    corpus = resolved(
        tmp_path,
        train=["base.tsv", "{SPAN}.tsv"],
        eval="test.tsv",
        test="test.tsv",
        spans={"test_share": 0.2},
    )
    file_groups = find_files(corpus)
    assert [(*names(g.files), g.span, g.test_share) for g in file_groups["train"]] == [
        ("base.tsv", "fixed", 0.0),
        ("1.tsv", "1", 0.0),
        ("2.tsv", "2", 0.2),
    ]
    assert [(g.span, g.test_share) for g in file_groups["test"]] == [("fixed", 0.0)]
    assert Corpus.from_json(corpus.to_json()) == corpus


def test_sides_of_a_span_with_different_numbers_of_files(tmp_path):
    touch(tmp_path, "1/a.en", "1/b.en", "1/a.de")
    error = error_of(tmp_path, train={"source": "{SPAN}/*.en", "target": "{SPAN}/*.de"})
    assert error.message.startswith("Span 1: The sides have different numbers of files: source 2")


@pytest.mark.parametrize(
    "train",
    [
        ["*.tsv", "{SPAN}.tsv"],
        ["*.tsv", "./{SPAN}.tsv"],
        ["{SPAN}.tsv", "a/../{SPAN}.tsv"],
        "**/{SPAN}.tsv",
    ],
)
def test_files_that_are_named_twice(tmp_path, train):
    touch(tmp_path, "1.tsv", "2.tsv", "a/x")
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    error = error_of(tmp_path, train=train)
    assert error.message.endswith("1.tsv is named twice")
    assert error.where == "data.train"


def test_one_source_with_two_references(tmp_path):
    touch(tmp_path, "1.en", "1.a.de", "1.b.de")
    train = {"source": ["{SPAN}.en", "{SPAN}.en"], "target": ["{SPAN}.a.de", "{SPAN}.b.de"]}
    pairs = [names(group.files) for group in groups(tmp_path, train=train)]
    assert pairs == [["1.en", "1.a.de"], ["1.en", "1.b.de"]]


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "a.tsv")
    error = error_of(tmp_path, train="a.tsv")
    assert error.message == f"{tmp_path}/a.tsv cannot be used: it is a FIFO, not a regular file"
    assert (error.where, error.remedy) == (
        "data.train",
        "Copy its content to a file, and name that.",
    )
    assert "it is a device" in error_of(tmp_path, train="/dev/zero", format="tsv").message


@pytest.mark.parametrize("train", ["b.tsv", "*.tsv", ["a.tsv", "b.tsv"], "{SPAN}/x.tsv"])
def test_broken_links_are_errors(tmp_path, train):
    touch(tmp_path, "a.tsv", "1/x.tsv", "2/y.tsv")
    for name in ("b.tsv", "2/x.tsv"):
        (tmp_path / name).symlink_to("moved/c.tsv")
    error = error_of(tmp_path, train=train)
    assert "moved/c.tsv" in error.message
    assert error.where == "data.train"


def test_broken_links_of_sides_and_images(tmp_path):
    touch(tmp_path, "a.en", "a.tsv")
    (tmp_path / "a.de").symlink_to("a.de")  # of itself
    (tmp_path / "images").symlink_to("/nowhere/images")
    error = error_of(tmp_path, train={"source": "a.en", "target": "a.de"})
    assert error.where == "data.train.target"
    assert "link" in error.message
    error = error_of(tmp_path, CAPTIONED, train="a.tsv", images="images")
    assert (error.where, "/nowhere/images" in error.message) == ("data.images", True)


def test_a_folder_with_glob_characters_before_a_pattern(tmp_path):
    (tmp_path / "d[2]").mkdir()
    (tmp_path / "d[2]" / "a.tsv").touch()
    with pytest.raises(UserError) as caught:
        expand_all(str(tmp_path), ["d[2]/*.tsv"], "data.train")
    assert "`d[[]2]/*.tsv`" in caught.value.remedy
    (path,) = expand_all(str(tmp_path), ["d[[]2]/*.tsv"], "data.train")
    assert path == str(tmp_path / "d[2]" / "a.tsv")


def test_a_fifo_that_a_glob_matches_is_not_left_out(tmp_path):
    touch(tmp_path, "a.tsv")
    os.mkfifo(tmp_path / "b.tsv")
    assert "FIFO" in error_of(tmp_path, train="*.tsv").message
