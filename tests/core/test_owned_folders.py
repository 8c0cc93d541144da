"""Only folders that Regard created are removed, at whatever moment a process is killed."""

import os
import shutil

import pytest

from regard.core import owned_folders
from regard.core.owned_folders import CHECKPOINTS, SEARCH


def make(path, *names):
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("content")
    return path


def test_a_new_folder_gets_a_mark_and_is_removed(tmp_path):
    folder = tmp_path / "a" / "b"
    assert owned_folders.create(folder, CHECKPOINTS)
    make(folder, "last.npz", "logs/one/two")
    assert owned_folders.create(folder, CHECKPOINTS)  # as a second process does
    assert owned_folders.remove(folder, CHECKPOINTS)
    assert list((tmp_path / "a").iterdir()) == []


def test_a_folder_with_other_content_gets_no_mark(tmp_path):
    folder = make(tmp_path / "mine", "notes")
    assert not owned_folders.create(folder, CHECKPOINTS)
    assert not owned_folders.remove(folder, CHECKPOINTS)
    assert [path.name for path in folder.iterdir()] == ["notes"]


def test_an_empty_folder_of_the_user_gets_no_mark(tmp_path):
    (tmp_path / "mine").mkdir()
    assert not owned_folders.create(tmp_path / "mine", CHECKPOINTS)
    assert list((tmp_path / "mine").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        owned_folders.create(tmp_path / "file", CHECKPOINTS)


@pytest.mark.parametrize("name", ["backup", ".removed-backup", "folder-2", ".removed-folder-mine"])
def test_a_copy_of_a_folder_is_not_owned(tmp_path, name):
    owned_folders.create(tmp_path / "folder", CHECKPOINTS)
    shutil.copytree(tmp_path / "folder", tmp_path / name)
    make(tmp_path / name, "notes")
    assert not owned_folders.remove(tmp_path / name, CHECKPOINTS)
    assert (tmp_path / name / "notes").read_text() == "content"


def test_the_mark_of_an_earlier_version_allows_nothing(tmp_path):
    make(tmp_path / "folder", "last.npz")
    (tmp_path / "folder" / owned_folders.mark_name(CHECKPOINTS)).touch()
    assert not owned_folders.remove(tmp_path / "folder", CHECKPOINTS)


def test_a_folder_of_another_kind_stays(tmp_path):
    owned_folders.create(tmp_path / "search", SEARCH)
    assert not owned_folders.remove(tmp_path / "search", CHECKPOINTS)
    assert owned_folders.is_owned(tmp_path / "search", SEARCH)


def test_links_are_not_followed(tmp_path):
    mine = make(tmp_path / "mine", "notes")
    folder = tmp_path / "folder"
    owned_folders.create(folder, CHECKPOINTS)
    (folder / "link").symlink_to(mine)
    (tmp_path / "linked").symlink_to(folder)
    assert not owned_folders.remove(tmp_path / "linked", CHECKPOINTS)
    assert owned_folders.remove(folder, CHECKPOINTS)
    assert (mine / "notes").read_text() == "content"


def test_a_removal_that_is_killed_leaves_a_folder_with_its_mark(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    owned_folders.create(folder, CHECKPOINTS)
    make(folder, *"abcdef")
    unlink, removed = os.unlink, []

    def unlink_three(path, *arguments, **options):
        if len(removed) == 3:
            raise KeyboardInterrupt
        removed.append(path)
        unlink(path, *arguments, **options)

    with monkeypatch.context() as context:
        context.setattr(os, "unlink", unlink_three)
        with pytest.raises(KeyboardInterrupt):
            owned_folders.remove(folder, CHECKPOINTS)
    (rest,) = tmp_path.iterdir()
    assert owned_folders.is_hidden(rest)
    assert owned_folders.remove(rest, CHECKPOINTS)
    assert not rest.exists()


def test_a_folder_without_the_mark_is_renamed_not_discarded(tmp_path):
    folder = make(tmp_path / "k3y", "last.npz")
    owned_folders.discard(folder, CHECKPOINTS)
    (renamed,) = tmp_path.iterdir()
    assert renamed != folder
    assert (renamed / "last.npz").read_text() == "content"
    owned_folders.discard(folder, CHECKPOINTS)  # it does not exist
    owned_folders.create(folder, CHECKPOINTS)
    owned_folders.discard(folder, CHECKPOINTS)
    assert list(tmp_path.iterdir()) == [renamed]
