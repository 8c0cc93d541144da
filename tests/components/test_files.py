"""Where files can be written, and what our own are known by."""

from __future__ import annotations

import os

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
