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

from components.pusher.push import push
from components.registry import Registry, publishing
from components.registry.publishing import content_digest


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
    assert push(model, root, "m", {"run": "r1"}, "c0de") == (1, True)
    other = make_model(tmp_path / "other", b"other weights")
    assert push(other, root, "m", {"run": "r2"}) == (2, True)
    registry = Registry(root)
    assert registry.versions("m") == [1, 2]
    record = registry.record("m", 1)
    assert (record["name"], record["version"], record["run"]) == ("m", 1, "r1")
    assert record["code"] == "c0de"
    assert record["created"].endswith("+00:00")
    pushed = {
        path.relative_to(root / "m" / "1").as_posix(): path.read_bytes()
        for path in (root / "m" / "1").rglob("*")
        if path.is_file()
    }
    assert json.loads(pushed.pop("regard.json")) == record
    assert pushed["variables/variables.data-00000-of-00001"] == b"weights"
    assert len(pushed) == 4
    assert sorted(path.name for path in (root / "m").iterdir()) == ["1", "2"]


def test_the_same_model_is_not_pushed_twice(model, tmp_path):
    push(model, tmp_path / "r", "m", {})
    # A new export of the same weights differs in its fingerprint only.
    (model / "fingerprint.pb").write_bytes(b"another")
    assert push(model, tmp_path / "r", "m", {}) == (1, False)
    # A version of other hands has no record; its content counts.
    (tmp_path / "r" / "m" / "1" / "regard.json").unlink()
    assert push(model, tmp_path / "r", "m", {}) == (1, False)


def test_only_the_newest_version_is_compared(model, tmp_path):
    push(model, tmp_path / "r", "m", {})
    push(make_model(tmp_path / "other", b"other"), tmp_path / "r", "m", {})
    assert push(model, tmp_path / "r", "m", {}) == (3, True)


def test_digest_sees_names_and_content(model, tmp_path):
    first = content_digest(model)
    assert first == content_digest(make_model(tmp_path / "same", b"weights"))
    assert first != content_digest(make_model(tmp_path / "other", b"weightz"))
    (model / "assets" / "vocabulary").write_bytes(b"x")
    assert first != content_digest(model)


def test_a_version_is_a_copy_and_not_a_link(model, tmp_path):
    push(model, tmp_path / "r", "m", {})
    with open(model / "saved_model.pb", "r+b") as file:
        file.write(b"GRAPH")
    assert (tmp_path / "r" / "m" / "1" / "saved_model.pb").read_bytes() == b"graph"


def test_a_number_that_is_taken_is_passed_over(model, tmp_path):
    (tmp_path / "r" / "m" / "7").mkdir(parents=True)
    assert push(model, tmp_path / "r", "m", {})[0] == 8


def test_pushes_at_once_get_versions_of_their_own(tmp_path):
    models = [make_model(tmp_path / f"model{n}", b"%d" % n) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        pushed = list(pool.map(lambda path: push(path, tmp_path / "r", "m", {}), models))
    assert sorted(version for version, _ in pushed) == list(range(1, 9))
    registry = Registry(tmp_path / "r")
    for path, (version, new) in zip(models, pushed, strict=True):
        assert new
        assert registry.record("m", version)["version"] == version
        assert content_digest(registry.path("m", version)) == content_digest(path)
    assert len(list((tmp_path / "r" / "m").iterdir())) == 8


def test_one_model_pushed_by_several_at_once_is_one_version(model, tmp_path, monkeypatch):
    """All have seen that it is not there, and copied it, before the first one is published."""
    both, real = threading.Barrier(4), publishing.publish

    def together(*arguments):
        both.wait(30)
        return real(*arguments)

    monkeypatch.setattr("components.pusher.push.publish", together)
    with ThreadPoolExecutor(4) as pool:
        pushed = list(pool.map(lambda _: push(model, tmp_path / "r", "m", {}), range(4)))
    assert sorted(pushed) == [(1, False)] * 3 + [(1, True)]
    assert [path.name for path in (tmp_path / "r" / "m").iterdir()] == ["1"]


def slow_push(model: Path, root: Path, copied) -> None:
    """Pushes, but sleeps after the first file."""

    def slow(source, target, copyfile=publishing.shutil.copyfile):
        copyfile(source, target)
        copied.set()
        time.sleep(60)

    publishing.shutil.copyfile = slow
    push(model, root, "m", {})


def test_a_killed_push_leaves_no_version_and_is_cleaned_up(model, tmp_path):
    root = tmp_path / "r"
    # A fork: it has imported what it needs already, and copies files only.
    context = multiprocessing.get_context("fork")
    copied = context.Event()
    process = context.Process(target=slow_push, args=(model, root, copied))
    process.start()
    try:
        assert copied.wait(30)
        # It is at work: another push goes on beside it and lets it alone.
        assert push(make_model(tmp_path / "other", b"other"), root, "m", {}) == (1, True)
        assert len(list((root / "m").glob(".pushing-*"))) == 1
    finally:
        process.kill()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert Registry(root).versions("m") == [1]
    assert len(list((root / "m").glob(".pushing-*"))) == 1
    assert push(model, root, "m", {}) == (2, True)
    assert sorted(path.name for path in (root / "m").iterdir()) == ["1", "2"]


def test_a_failed_copy_leaves_nothing(model, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(publishing.shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        push(model, tmp_path / "r", "m", {})
    assert list((tmp_path / "r" / "m").iterdir()) == []
