"""Where files can be written, and what our own are known by."""

from __future__ import annotations

import os

import pytest

from components import files


def test_writable_looks_at_the_nearest_folder_that_is_there(tmp_path, monkeypatch):
    assert files.writable(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    assert not files.writable(tmp_path / "file" / "b")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not files.writable(tmp_path / "a")


def test_the_digest_of_our_sources_knows_templates_scripts_and_styles(monkeypatch):
    whole = files.source_digest("components/reporter", "serving/web/page")
    for suffix in (".py", ".jinja", ".js", ".css"):
        with monkeypatch.context() as patch:
            patch.setattr(files, "_SOURCES", files._SOURCES - {suffix})
            assert files.source_digest("components/reporter", "serving/web/page") != whole


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    calls, (sync, replace) = [], (os.fsync, os.replace)
    monkeypatch.setattr(os, "fsync", lambda number: (calls.append("sync"), sync(number)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append("name"), replace(*paths)))
    files.atomic_write(tmp_path / "file", "content")
    assert calls == ["sync", "name"]
    with files.atomic_path(tmp_path / "folder") as temporary:
        temporary.mkdir()
    assert (tmp_path / "folder").is_dir()


def test_two_attempts_at_one_file_of_an_artifact_are_in_nobodys_way(tmp_path, monkeypatch):
    from tfx.dsl.io import fileio

    rename, uri = fileio.rename, str(tmp_path / "report.json")

    def overtaken(*args, **kwargs):
        monkeypatch.setattr(fileio, "rename", rename)
        files.write_uri(uri, "the same")
        rename(*args, **kwargs)

    monkeypatch.setattr(fileio, "rename", overtaken)
    files.write_uri(uri, "the same")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [
        ("report.json", "the same")
    ]


def test_a_file_of_an_artifact_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "report.json").mkdir()
    (tmp_path / "report.json" / "in the way").touch()
    with pytest.raises(Exception, match="directory"):
        files.write_uri(str(tmp_path / "report.json"), "content")
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_a_folder_takes_the_place_of_another_and_nothing_is_left(tmp_path):
    new, final = tmp_path / "new", tmp_path / "final"
    for content in ("one", "two"):
        new.mkdir()
        (new / content).write_text(content)
        files.replace_dir(new, final)
        assert [path.name for path in tmp_path.iterdir()] == ["final"]
        assert [path.name for path in final.iterdir()] == [content]


def test_the_folder_before_is_there_until_the_new_one_is(tmp_path, monkeypatch):
    new, final = tmp_path / "new", tmp_path / "final"
    for folder in (new, final):
        folder.mkdir()
        (folder / "content").write_text(folder.name)
    monkeypatch.setattr(files.shutil, "rmtree", lambda path, **_: os.stat(final / "content"))
    files.replace_dir(new, final)
    assert (final / "content").read_text() == "new"
    assert (tmp_path / "new.old" / "content").read_text() == "final"
