"""Atomic writes of files and folders."""

import os

import pytest

from regard.core import files
from regard.core.errors import UserError


def test_is_writable_checks_the_nearest_existing_folder(tmp_path, monkeypatch):
    assert files.is_writable(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    assert not files.is_writable(tmp_path / "file" / "b")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not files.is_writable(tmp_path / "a")


def test_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    calls, (sync, replace) = [], (os.fsync, os.replace)
    monkeypatch.setattr(os, "fsync", lambda number: (calls.append("sync"), sync(number)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append("name"), replace(*paths)))
    files.atomic_write(tmp_path / "file", "content")
    assert calls == ["sync", "name"]
    with files.atomic_path(tmp_path / "folder") as temporary:
        temporary.mkdir()
    assert (tmp_path / "folder").is_dir()


def test_replace_dir(tmp_path):
    new, final = tmp_path / "new", tmp_path / "final"
    for content in ("one", "two"):
        new.mkdir()
        (new / "mark").write_text(content)
        files.replace_dir(new, final, "mark")
        assert [path.name for path in tmp_path.iterdir()] == ["final"]
        assert (final / "mark").read_text() == content


@pytest.mark.parametrize("kind", ["other content", "a link", "a file"])
def test_replace_dir_replaces_only_folders_with_the_mark(tmp_path, kind):
    new, final, elsewhere = tmp_path / "new", tmp_path / "final", tmp_path / "elsewhere"
    for folder in (new, elsewhere):
        folder.mkdir()
        (folder / "mark").touch()
    if kind == "a link":
        final.symlink_to(elsewhere)
    elif kind == "a file":
        final.touch()
    else:
        final.mkdir()
        (final / "notes").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError) as caught:
        files.replace_dir(new, final, "mark")
    assert caught.value.where == str(final)
    assert sorted(tmp_path.rglob("*")) == before


def test_old_folder_is_removed_last(tmp_path, monkeypatch):
    new, final = tmp_path / "new", tmp_path / "final"
    for folder in (new, final):
        folder.mkdir()
        (folder / "content").write_text(folder.name)
    monkeypatch.setattr(files.shutil, "rmtree", lambda path, **_: os.stat(final / "content"))
    files.replace_dir(new, final, "content")
    assert (final / "content").read_text() == "new"
    assert (tmp_path / "new.old" / "content").read_text() == "final"


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b'{"a": 1}', {"a": 1}), (b"[1]", {}), (b"{", {}), (b"\xff", {}), (None, {})],
)
def test_read_json_object(tmp_path, content, expected):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    assert files.read_json_object(path) == expected
