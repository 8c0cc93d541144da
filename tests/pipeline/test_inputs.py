"""Missing data is told before anything slow starts, with the command that brings it."""

from __future__ import annotations

import pytest

from components.errors import UserError
from pipeline.config import load
from pipeline.inputs import data_section


def config(folder, root):
    path = folder / "tiny.yaml"
    path.write_text(f"name: tiny\ndata: {{root: {root}, train: a.tsv}}\n")
    return load(path, home=folder)


def test_files_that_are_there(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n")
    data = data_section(config(tmp_path, "."))
    assert (data["root"], data["train"]) == (str(tmp_path), "a.tsv")
    assert [(f["name"], f["role"]) for f in data["features"]] == [
        ("source", "input"),
        ("target", "reference"),
    ]


@pytest.mark.parametrize(
    ("name", "command"),
    [("quickstart", "regard data generate quickstart"), ("multi30k", "regard data fetch multi30k")],
)
def test_folder_of_a_known_data_set_is_brought_by_a_command(tmp_path, name, command):
    with pytest.raises(UserError, match="there is no folder") as caught:
        data_section(config(tmp_path, f"data/{name}"))
    assert command in caught.value.remedy
    (tmp_path / "data" / name).mkdir(parents=True)  # with other files in it: another mistake
    with pytest.raises(UserError, match=r"no such file: .*a\.tsv"):
        data_section(config(tmp_path, f"data/{name}"))


def test_other_folders_are_checked_as_ever(tmp_path):
    with pytest.raises(UserError) as caught:
        data_section(config(tmp_path, "gone"))
    assert "check `data.root`" in caught.value.remedy
