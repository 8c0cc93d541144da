from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from regard.components.registry import Registry, VersionRecord, publish
from regard.components.registry.publish import content_digest, push


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "model", b"weights")


def make_model(path: Path, weights: bytes) -> Path:
    (path / "variables").mkdir(parents=True)
    (path / "assets").mkdir()
    (path / "saved_model.pb").write_bytes(b"graph")
    (path / "variables" / "variables.index").write_bytes(b"index")
    (path / "variables" / "variables.data-00000-of-00001").write_bytes(weights)
    (path / "fingerprint.pb").write_bytes(os.urandom(8))
    return path


def test_versions_count_up(model, tmp_path):
    root = tmp_path / "registry"
    assert push(model, root, "m", VersionRecord(run="r1", code="c0de")) == (1, True)
    other = make_model(tmp_path / "other", b"other weights")
    assert push(other, root, "m", VersionRecord(run="r2")) == (2, True)
    registry = Registry(root)
    assert registry.versions("m") == [1, 2]
    record = registry.record("m", 1)
    assert (record.name, record.version, record.run) == ("m", 1, "r1")
    assert record.code == "c0de"
    assert record.created.endswith("+00:00")
    pushed = {
        path.relative_to(root / "m" / "1").as_posix(): path.read_bytes()
        for path in (root / "m" / "1").rglob("*")
        if path.is_file()
    }
    assert json.loads(pushed.pop("regard.json")) == record.to_dict()
    assert pushed["variables/variables.data-00000-of-00001"] == b"weights"
    assert len(pushed) == 4
    assert sorted(path.name for path in (root / "m").iterdir()) == ["1", "2"]


def test_the_same_model_is_not_pushed_twice(model, tmp_path):
    push(model, tmp_path / "r", "m", VersionRecord())
    # A new export of the same weights differs only in its fingerprint.
    (model / "fingerprint.pb").write_bytes(b"another")
    assert push(model, tmp_path / "r", "m", VersionRecord()) == (1, False)
    # A version without a record is identified by its content.
    (tmp_path / "r" / "m" / "1" / "regard.json").unlink()
    assert push(model, tmp_path / "r", "m", VersionRecord()) == (1, False)


def test_only_the_newest_version_is_compared_by_content(model, tmp_path):
    push(model, tmp_path / "r", "m", VersionRecord())
    push(make_model(tmp_path / "other", b"other"), tmp_path / "r", "m", VersionRecord())
    assert push(model, tmp_path / "r", "m", VersionRecord()) == (3, True)


def test_the_digest_covers_names_and_content(model, tmp_path):
    first = content_digest(model)
    assert first == content_digest(make_model(tmp_path / "same", b"weights"))
    assert first != content_digest(make_model(tmp_path / "other", b"weightz"))
    (model / "assets" / "vocabulary").write_bytes(b"x")
    assert first != content_digest(model)


def test_versions_are_copies(model, tmp_path):
    push(model, tmp_path / "r", "m", VersionRecord())
    with open(model / "saved_model.pb", "r+b") as file:
        file.write(b"GRAPH")
    assert (tmp_path / "r" / "m" / "1" / "saved_model.pb").read_bytes() == b"graph"


def test_used_numbers_are_skipped(model, tmp_path):
    (tmp_path / "r" / "m" / "7").mkdir(parents=True)
    assert push(model, tmp_path / "r", "m", VersionRecord())[0] == 8


def test_concurrent_pushes_get_different_versions(tmp_path):
    models = [make_model(tmp_path / f"model{n}", b"%d" % n) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        pushed = list(
            pool.map(lambda path: push(path, tmp_path / "r", "m", VersionRecord()), models)
        )
    assert sorted(version for version, _ in pushed) == list(range(1, 9))
    registry = Registry(tmp_path / "r")
    for path, (version, new) in zip(models, pushed, strict=True):
        assert new
        assert registry.record("m", version).version == version
        assert content_digest(registry.path("m", version)) == content_digest(path)
    assert len(list((tmp_path / "r" / "m").iterdir())) == 8


def test_concurrent_pushes_of_one_model_make_one_version(model, tmp_path, monkeypatch):
    """All copy the model before the first one is published."""
    both, real = threading.Barrier(4), publish.publish

    def publish_together(*arguments):
        both.wait(30)
        return real(*arguments)

    monkeypatch.setattr("regard.components.registry.publish.publish", publish_together)
    with ThreadPoolExecutor(4) as pool:
        pushed = list(
            pool.map(lambda _: push(model, tmp_path / "r", "m", VersionRecord()), range(4))
        )
    assert sorted(pushed) == [(1, False)] * 3 + [(1, True)]
    assert [path.name for path in (tmp_path / "r" / "m").iterdir()] == ["1"]


def slow_push(model: Path, root: Path, copied) -> None:
    """Push, but sleep after the first file."""

    def slow(source, target, copyfile=publish.shutil.copyfile):
        copyfile(source, target)
        copied.set()
        time.sleep(60)

    publish.shutil.copyfile = slow
    push(model, root, "m", VersionRecord())


def test_a_killed_push_leaves_no_version(model, tmp_path):
    root = tmp_path / "r"
    # A fork has the imports already.
    context = multiprocessing.get_context("fork")
    copied = context.Event()
    process = context.Process(target=slow_push, args=(model, root, copied))
    process.start()
    try:
        assert copied.wait(30)
        # A concurrent push does not remove the folder of a running one.
        assert push(make_model(tmp_path / "other", b"other"), root, "m", VersionRecord()) == (
            1,
            True,
        )
        assert len(list((root / "m").glob(".pushing-*"))) == 1
    finally:
        process.kill()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert Registry(root).versions("m") == [1]
    assert len(list((root / "m").glob(".pushing-*"))) == 1
    assert push(model, root, "m", VersionRecord()) == (2, True)
    assert sorted(path.name for path in (root / "m").iterdir()) == ["1", "2"]


def test_a_failed_copy_leaves_nothing(model, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(publish.shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        push(model, tmp_path / "r", "m", VersionRecord())
    assert list((tmp_path / "r" / "m").iterdir()) == []
