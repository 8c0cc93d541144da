"""SIGKILL at each step of a change: the registry stays servable and can be repaired."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from regard.components.registry import Registry, read_record
from regard.components.registry.prune import prune
from regard.components.registry.rollback import rollback
from regard.serving.server.versions import list_versions
from tests.components.registry.models import push_models, weights_of

# The calls that change or sync the disk.
CHANGES = (
    *((os, name) for name in ("rename", "mkdir", "fsync", "unlink", "rmdir")),
    (shutil, "copyfile"),
    (Path, "write_text"),
)


def run_and_kill(point: int, when: str, work: Callable[[], object]) -> None:
    """Run a function, and kill the process before or after the n-th change."""
    count = 0

    def killing(real):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            own = count
            if own == point and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments, **options)
            if own == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for module, name in CHANGES:
        setattr(module, name, killing(getattr(module, name)))
    work()


def is_killed(point: int, when: str, work: Callable[[], object]) -> bool:
    # A fork has the imports already.
    process = multiprocessing.get_context("fork").Process(
        target=run_and_kill, args=(point, when, work)
    )
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def complete_versions(registry: Registry) -> list[int]:
    """Return the versions that a server sees, which must be complete."""
    folders = list_versions(registry.root / "m")
    for number, folder in folders.items():
        assert read_record(folder).version == number
        assert weights_of(registry, number) > 0
    return sorted(folders)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_rollback_has_happened_completely_or_not_at_all(tmp_path, when):
    counts = set()
    for point in range(1, 100):  # until it finishes before it is killed
        root = tmp_path / str(point) / "registry"
        registry = push_models(root, 3)
        if not is_killed(point, when, partial(rollback, registry, "m")):
            break
        counts.add(len(complete_versions(registry)))
        assert complete_versions(registry) in ([1, 2, 3], [1, 2, 3, 4])
        assert weights_of(registry) == (2 if 4 in complete_versions(registry) else 3)
        if 4 not in complete_versions(registry):
            rollback(registry, "m")
            assert (complete_versions(registry), weights_of(registry)) == ([1, 2, 3, 4], 2)
            assert len(list((root / "m").iterdir())) == 4  # no leftovers
    else:
        raise AssertionError("it never finished")
    assert point > 8
    assert counts == {3, 4}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_prune_leaves_complete_versions(tmp_path, when):
    counts = set()
    for point in range(1, 100):  # until it finishes before it is killed
        root = tmp_path / str(point) / "registry"
        registry = push_models(root, 3)
        if not is_killed(point, when, partial(prune, registry, "m", 1)):
            break
        versions = complete_versions(registry)
        counts.add(len(versions))
        assert versions in ([1, 2, 3], [1, 3], [3])
        assert weights_of(registry) == 3
        prune(registry, "m", 1)
        assert [path.name for path in (root / "m").iterdir()] == ["3"]
    else:
        raise AssertionError("it never finished")
    assert counts >= {2, 1}
