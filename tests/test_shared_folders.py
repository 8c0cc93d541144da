"""Folders that a run of the tests builds once."""

import pytest

from tests.shared_folders import SharedFolders


@pytest.fixture
def built():
    return []


@pytest.fixture
def build(built):
    def write(folder):
        built.append(folder)
        folder.mkdir()
        (folder / "file").write_text("text")

    return write


def test_a_folder_is_built_once_and_copies_can_change(tmp_path, build, built):
    first = SharedFolders(tmp_path / "shared").copy("a", build, tmp_path / "copies" / "1")
    (first / "file").write_text("changed")
    second = SharedFolders(tmp_path / "shared").copy("a", build, tmp_path / "copies" / "2")
    assert (second / "file").read_text() == "text"
    assert len(built) == 1


def test_a_folder_whose_building_failed_is_built_again(tmp_path, build):
    def fail(folder):
        build(folder)
        raise ZeroDivisionError

    folders = SharedFolders(tmp_path)
    with pytest.raises(ZeroDivisionError):
        folders.get("a", fail)
    assert not (tmp_path / "a").exists()
    assert (folders.get("a", build) / "file").read_text() == "text"
