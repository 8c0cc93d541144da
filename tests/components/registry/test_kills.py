"""SIGKILL at each step of a change: the registry stays servable and can be repaired."""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from regard.components.registry.prune import prune
from regard.components.registry.publish import push
from regard.components.registry.records import VersionRecord, read_record
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.serving.server.versions import list_versions
from tests.components.registry.models import push_models, weights_of

# The calls that change or sync the disk.
CHANGES = (
    *((os, name) for name in ("rename", "mkdir", "fsync", "unlink", "rmdir")),
    (shutil, "copyfile"),
    (Path, "write_text"),
)


def run_and_kill(point: int, work: Callable[[], object]) -> None:
    """Run a function, and kill the process before the n-th change.

    A kill after a change would leave the same files as a kill before the next one.
    """
    count = 0

    def killing(real):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for module, name in CHANGES:
        setattr(module, name, killing(getattr(module, name)))
    work()


def is_killed(point: int, work: Callable[[], object]) -> bool:
    # A fork has the imports already.
    process = multiprocessing.get_context("fork").Process(target=run_and_kill, args=(point, work))
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


def kill_everywhere(root: Path, work: Callable[[Registry], object]) -> Iterator[Registry]:
    """Yield a registry for each change at which the work can be killed."""
    original = push_models(root / "original", 3).root
    for point in range(1, 100):
        registry = Registry(shutil.copytree(original, root / str(point)))
        if not is_killed(point, partial(work, registry)):
            assert point > 4
            return
        yield registry
    raise AssertionError("it never finished")


PUSH = (lambda registry: push(registry.path("m", 1), registry.root, "m", VersionRecord()), 1)
ROLLBACK = (lambda registry: rollback(registry, "m"), 2)


@pytest.mark.parametrize(("work", "weights"), [PUSH, ROLLBACK])
def test_a_killed_change_has_happened_completely_or_not_at_all(tmp_path, work, weights):
    counts = set()
    for registry in kill_everywhere(tmp_path, work):
        versions = complete_versions(registry)
        counts.add(len(versions))
        assert versions in ([1, 2, 3], [1, 2, 3, 4])
        assert weights_of(registry) == (weights if 4 in versions else 3)
        if 4 not in versions:
            work(registry)
            assert (complete_versions(registry), weights_of(registry)) == ([1, 2, 3, 4], weights)
            assert len(list((registry.root / "m").iterdir())) == 4  # no leftovers
    assert counts == {3, 4}


def test_a_killed_prune_leaves_complete_versions(tmp_path):
    counts = set()
    for registry in kill_everywhere(tmp_path, lambda registry: prune(registry, "m", 1)):
        versions = complete_versions(registry)
        counts.add(len(versions))
        assert versions in ([1, 2, 3], [1, 3], [3])
        assert weights_of(registry) == 3
        prune(registry, "m", 1)
        assert [path.name for path in (registry.root / "m").iterdir()] == ["3"]
    assert counts >= {2, 1}
