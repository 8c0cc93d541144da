"""Where files can be written."""

from __future__ import annotations

import os

from components import files


def test_writable_looks_at_the_nearest_folder_that_is_there(tmp_path, monkeypatch):
    assert files.writable(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    assert not files.writable(tmp_path / "file" / "b")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not files.writable(tmp_path / "a")
