"""Two hosts with the locks of NFS change one registry: no version is damaged, none is lost."""

import errno
import fcntl
import os
import random

import pytest

from benchmarks.trust import registry as trust
from regard.components.registry.store import Registry


def test_no_version_of_two_hosts_is_damaged(tmp_path):
    result = trust.change_registry(tmp_path, changes=150, hosts=2, seed=3)
    assert result["changes"] >= 150
    assert result["published"] > 40
    assert result["kills"] >= 1
    assert (result["not whole"], result["numbers used twice"]) == (0, 0)
    assert set(result["errors"]) <= {"refused"}
    assert result["leftovers after a removal"] == 0


def test_a_damaged_version_is_counted(tmp_path):
    registry = Registry(tmp_path / "registry")
    trust.change(registry, "push", tmp_path / "models", random.Random(1))
    assert list(trust.damaged_versions(registry, {})) == []
    (registry.path("m", 1) / "weights-3").write_bytes(b"")
    assert list(trust.damaged_versions(registry, {})) == [1]


def test_locks_are_those_of_nfs(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    (tmp_path / "lock").touch()
    reader = os.open(tmp_path / "lock", os.O_RDONLY)
    trust.nfs_flock(folder, fcntl.LOCK_EX)
    trust.nfs_flock(reader, fcntl.LOCK_SH)
    with pytest.raises(OSError) as caught:
        trust.nfs_flock(reader, fcntl.LOCK_EX)
    assert caught.value.errno == errno.EBADF
    os.close(folder)
    os.close(reader)
