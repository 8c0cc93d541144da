"""SIGKILL at each step of what changes the registry: it can be served at any moment, and mended."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from components.registry import Registry, read_record
from components.registry.pruning import prune
from components.registry.rollback import rollback
from serving.local.versions import versions_in
from tests.components.registry.models import push_models, weights_of

# What changes something on the disk, or waits for it.
CHANGES = (
    *((os, name) for name in ("rename", "mkdir", "fsync", "unlink", "rmdir")),
    (shutil, "copyfile"),
    (Path, "write_text"),
)


def ended_at(point: int, when: str, work: Callable[[], object]) -> None:
    """Works, and ends itself before or after the n-th change."""
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


def killed(point: int, when: str, work: Callable[[], object]) -> bool:
    # A fork: it has imported what it needs already.
    process = multiprocessing.get_context("fork").Process(target=ended_at, args=(point, when, work))
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def whole(registry: Registry) -> list[int]:
    """The versions that a server sees, each of them whole."""
    found = versions_in(registry.root / "m")
    for number, folder in found.items():
        assert read_record(folder)["version"] == number
        assert weights_of(registry, number) > 0
    return sorted(found)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rollback_that_is_killed_has_happened_or_not(tmp_path, when):
    seen = set()
    for point in range(1, 100):  # until it ends before it is killed
        root = tmp_path / str(point) / "registry"
        registry = push_models(root, 3)
        if not killed(point, when, partial(rollback, registry, "m")):
            break
        seen.add(len(whole(registry)))
        assert whole(registry) in ([1, 2, 3], [1, 2, 3, 4])
        assert weights_of(registry) == (2 if 4 in whole(registry) else 3)
        if 4 not in whole(registry):
            rollback(registry, "m")
            assert (whole(registry), weights_of(registry)) == ([1, 2, 3, 4], 2)
            assert len(list((root / "m").iterdir())) == 4  # nothing is left lying about
    else:
        raise AssertionError("it never ended")
    assert point > 8
    assert seen == {3, 4}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_prune_that_is_killed_leaves_whole_versions_and_the_live_one(tmp_path, when):
    seen = set()
    for point in range(1, 100):  # until it ends before it is killed
        root = tmp_path / str(point) / "registry"
        registry = push_models(root, 3)
        if not killed(point, when, partial(prune, registry, "m", 1)):
            break
        left = whole(registry)
        seen.add(len(left))
        assert left in ([1, 2, 3], [1, 3], [3])
        assert weights_of(registry) == 3
        prune(registry, "m", 1)
        assert [path.name for path in (root / "m").iterdir()] == ["3"]
    else:
        raise AssertionError("it never ended")
    assert seen >= {2, 1}
