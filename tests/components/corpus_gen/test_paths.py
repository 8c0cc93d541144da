"""Which files a path names, and what is told where it names none."""

from __future__ import annotations

import pytest

from components.corpus_gen.paths import check_folder, expand, items_of
from components.errors import UserError


def refusal(root, item):
    with pytest.raises(UserError) as caught:
        expand(str(root), item, "data.train")
    assert caught.value.where == "data.train"
    return caught.value


def test_one_path_or_several():
    assert items_of("a") == ["a"]
    assert items_of(("a", "b")) == ["a", "b"]


def test_a_file_with_signs_of_patterns_in_its_name(tmp_path):
    (tmp_path / "a[1].tsv").touch()
    assert expand(str(tmp_path), "a[1].tsv", "data.train") == [str(tmp_path / "a[1].tsv")]


def test_a_glob_takes_files_alone_in_order(tmp_path):
    (tmp_path / "b.tsv").mkdir()
    for name in ("c.tsv", "a.tsv"):
        (tmp_path / name).touch()
    found = expand(str(tmp_path), "*.tsv", "data.train")
    assert found == [str(tmp_path / "a.tsv"), str(tmp_path / "c.tsv")]


def test_what_is_no_file_is_told(tmp_path):
    (tmp_path / "folder").mkdir()
    assert refusal(tmp_path, "folder").remedy == "Name its files, such as `folder/*.tsv`."
    assert refusal(tmp_path, "*.tsv").remedy == f"The folder {tmp_path} has: folder."
    assert refusal(tmp_path, "folder/a.tsv").remedy == f"The folder {tmp_path}/folder is empty."
    assert "There is no folder" in refusal(tmp_path, "none/deep/a.tsv").remedy
    with pytest.raises(UserError, match="no such folder"):
        check_folder(str(tmp_path / "none"), "data.images")


def test_braces_that_may_have_been_meant_as_a_placeholder(tmp_path):
    error = refusal(tmp_path, "day-{YYYY-MM-DD}.tsv")
    assert error.message == f"no such file: {tmp_path}/day-{{YYYY-MM-DD}}.tsv"
    assert error.remedy.endswith("did you mean {YYYY}-{MM}-{DD}?")
    assert refusal(tmp_path, "{SPANS}.tsv").remedy.endswith("did you mean {SPAN}?")
