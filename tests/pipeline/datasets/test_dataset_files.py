"""Generated data sets replace the files of earlier ones, and no others."""

import json

import pytest

from regard.core.errors import UserError
from regard.pipeline.datasets import dataset_files


def write(directory, name="one", content="a", **files):
    files = files or {"train.txt": [content]}
    return dataset_files.write_dataset(name, directory, 1, {"train": 1}, files)


@pytest.mark.parametrize("exists", [False, True])
def test_an_earlier_data_set_is_replaced(tmp_path, exists):
    folder = tmp_path if exists else tmp_path / "new"
    write(folder)
    assert write(folder, content="b") == {"train": 1}
    assert write(folder, "two", content="c") == {"train": 1}
    assert (folder / "train.txt").read_text() == "c\n"
    assert json.loads((folder / "two.json").read_text())["files"] == ["train.txt"]


def test_files_that_the_user_adds_stay(tmp_path):
    folder = tmp_path / "data"
    write(folder)
    (folder / "test.txt").write_text("mine")
    with pytest.raises(UserError) as caught:
        write(folder, "two", **{"train.txt": ["b"], "test.txt": ["b"]})
    assert caught.value.where == str(folder / "test.txt")
    assert (folder / "test.txt").read_text() == "mine"
    assert (folder / "train.txt").read_text() == "a\n"
    assert not (folder / "two.json").exists()


@pytest.mark.parametrize(
    "record", ['{"name": "other", "files": ["train.txt"]}', '{"files": ["train.txt"]}', "[", "{}"]
)
def test_a_file_of_the_user_is_not_a_record(tmp_path, record):
    (tmp_path / "train.txt").write_text("mine")
    (tmp_path / "manifest.json").write_text(record)
    with pytest.raises(UserError):
        write(tmp_path)
    assert (tmp_path / "train.txt").read_text() == "mine"
    (tmp_path / "one.json").write_text(record)
    (tmp_path / "train.txt").unlink()
    with pytest.raises(UserError):
        write(tmp_path)
    assert (tmp_path / "one.json").read_text() == record


def test_a_record_of_an_earlier_version_lists_no_files(tmp_path):
    (tmp_path / "one.json").write_text('{"name": "one", "seed": 1, "rows": {"train": 1}}')
    (tmp_path / "train.txt").write_text("old")
    write(tmp_path)
    assert (tmp_path / "train.txt").read_text() == "a\n"


def test_a_folder_of_files_is_one_entry(tmp_path):
    dataset_files.prepare_folder("one", tmp_path, ["images/"])
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.png").touch()
    dataset_files.prepare_folder("one", tmp_path, ["images/"])
    with pytest.raises(UserError):
        dataset_files.prepare_folder("two", tmp_path / "images", ["1.png"])


def test_a_killed_generation_is_repeated(tmp_path, monkeypatch):
    def kill(path, content):
        if path.name == "train.txt":
            raise KeyboardInterrupt
        atomic_write(path, content)

    atomic_write = dataset_files.atomic_write
    with monkeypatch.context() as context:
        context.setattr(dataset_files, "atomic_write", kill)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, **{"test.txt": ["a"], "train.txt": ["a"]})
    write(tmp_path, **{"test.txt": ["b"], "train.txt": ["b"]})
    assert (tmp_path / "test.txt").read_text() == "b\n"
