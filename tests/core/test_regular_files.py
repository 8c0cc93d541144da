"""Files of other people that are folders, FIFOs, devices, sockets or links."""

import os
import socket
from pathlib import Path

import pytest

from regard.components.registry.records import VersionRecord, read_record
from regard.core import locks
from regard.core.errors import UserError
from regard.core.regular_files import open_regular, read_regular
from regard.pipeline.prediction.constraints import read_glossary
from regard.pipeline.workspace import lock_pipeline
from regard.serving.contract import CONTRACT, SavedModelError, read_contract
from regard.serving.server.bearer_tokens import read_tokens
from regard.serving.server.errors import ServingError
from regard.serving.server.model_config import read_models

KINDS = ["folder", "fifo", "device", "socket"]


def make(path, kind):
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(path))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_opened(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path / "file", kind)
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT):
        with pytest.raises(OSError):
            open_regular(path, flags)


def test_a_regular_file_and_its_limit(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"12345")
    link.symlink_to(path)
    assert read_regular(link, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_regular(path, 4)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 4)


def test_a_lock_is_never_created_behind_a_link(tmp_path):
    target, lock = tmp_path / "target", tmp_path / "lock"
    lock.symlink_to(target)
    for _ in range(2):
        with pytest.raises(OSError, match="it is a symbolic link"):
            locks.acquire(lock)
        with pytest.raises(UserError, match="symbolic link"):
            lock_pipeline(lock)
        assert not target.exists() or target.read_text() == "mine"
        target.write_text("mine")


@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_of_another_kind(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    lock = make(tmp_path / "lock", kind)
    with pytest.raises(UserError):
        lock_pipeline(lock)
    assert not locks.is_locked(lock)
    assert locks.read_holder(lock) == {}
    with pytest.raises(OSError):
        locks.acquire_existing(lock, shared=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "read", "error"),
    [
        ("regard.json", lambda path: read_record(path.parent), UserError),
        (CONTRACT, lambda path: read_contract(path.parents[1]), SavedModelError),
        ("tokens", read_tokens, UserError),
        ("terms.tsv", read_glossary, UserError),
        ("models.config", read_models, ServingError),
    ],
)
def test_other_files(tmp_path, monkeypatch, kind, name, read, error):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        read(make(tmp_path / name, kind))


def test_a_missing_record_is_empty(tmp_path):
    assert read_record(tmp_path) == VersionRecord()
    assert read_record(Path(tmp_path, "none")) == VersionRecord()
