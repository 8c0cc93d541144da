"""Change a registry from several hosts at once, kill some of them, and look for damaged versions.

    python -m benchmarks.trust registry --changes 10000

Each host is a process with an id of its own and the file locks of an NFS client: an exclusive lock
needs a descriptor that is open for writing, locks of files hold on all hosts, and locks of folders
hold on one host only, which here has one process. The hosts push, roll back, prune and pin versions
of one model. A version is damaged if its files do not match the digest in its record, whoever looks
at whatever moment. The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import errno
import fcntl
import multiprocessing
import os
import random
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest import mock

from regard.components.registry import publish
from regard.components.registry.prune import pin, prune, unpin
from regard.components.registry.publish import WithdrawnModelError, push
from regard.components.registry.records import VersionRecord, read_record_or_empty
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.serving.content_digest import content_digest

NAME = "m"
FILES, FILE_BYTES = 8, 1 << 14
CHANGES = ("push", "push", "push", "push", "rollback", "prune", "prune", "pin", "unpin")
CHANGES_PER_KILL = 100
LOG, MODELS = "log.txt", "models"


def nfs_flock(descriptor: int, mode: int) -> None:
    """Lock as an NFS client does, see ``flock(2)``."""
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        return
    is_reader = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    if mode & fcntl.LOCK_EX and is_reader:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    _flock(descriptor, mode)


_flock = fcntl.flock


def make_model(path: Path, rng: random.Random) -> Path:
    """Write a new model of several files."""
    path.mkdir(parents=True)
    for name in ("saved_model.pb", *(f"weights-{index}" for index in range(FILES - 1))):
        (path / name).write_bytes(rng.randbytes(FILE_BYTES))
    return path


def change(registry: Registry, kind: str, models: Path, rng: random.Random) -> str:
    """Change the registry once, and return the version that was published, if one was."""
    versions = registry.versions(NAME)
    if kind == "push" or not versions:
        model = make_model(models / f"{rng.getrandbits(64):x}", rng)
        try:
            return str(push(model, registry.root, NAME, VersionRecord())[0])
        finally:
            shutil.rmtree(model)
    if kind == "rollback":
        return str(rollback(registry, NAME, rng.choice([None, *versions])).version)
    if kind == "prune":
        prune(registry, NAME, rng.randint(1, 4), withdrawn=rng.random() < 0.5)
    else:
        (pin if kind == "pin" else unpin)(registry, NAME, rng.choice(versions))
    return ""


def run_host(host: str, root: Path, seed: int) -> None:
    """Change the registry until this process is killed, and log every change."""
    fcntl.flock = nfs_flock  # type: ignore[assignment]
    publish.host_id = lambda: host
    rng, registry = random.Random(seed), Registry(root / "registry")
    with open(root / LOG, "a", buffering=1, encoding="utf-8") as log:
        while True:
            kind = rng.choice(CHANGES)
            try:
                version, error = change(registry, kind, root / MODELS, rng), "-"
            except (UserError, WithdrawnModelError):
                version, error = "", "refused"
            except OSError as failure:
                version, error = "", failure.strerror.replace(" ", "_")
            is_damaged = bool(version) and is_version_damaged(registry.path(NAME, int(version)))
            log.write(f"{kind} {error} {version or '-'} {is_damaged}\n")


def is_version_damaged(path: Path) -> bool:
    """Whether a version exists and its files do not match its record."""
    with contextlib.suppress(OSError):
        inode = path.stat().st_ino
        with contextlib.suppress(FileNotFoundError):
            if read_record_or_empty(path).digest == content_digest(path):
                return False
        return path.stat().st_ino == inode  # otherwise it was pruned meanwhile
    return False


def damaged_versions(registry: Registry, known: dict[int, int]) -> Iterator[int]:
    """Yield the damaged versions; ``known`` holds the inodes of those that were checked before."""
    with contextlib.suppress(FileNotFoundError):
        for entry in (registry.root / NAME).iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and entry.stat().st_ino != known.get(int(entry.name)):
                    known[int(entry.name)] = entry.stat().st_ino
                    if is_version_damaged(entry):
                        yield int(entry.name)


def change_registry(root: Path, changes: int, hosts: int, seed: int) -> dict[str, object]:
    """Let hosts make a number of changes, and return what happened.

    Args:
        root: An empty folder.
        changes: The number of changes of all hosts together.
        hosts: The number of hosts.
        seed: Of all random choices.
    """
    rng, registry, started = random.Random(seed), Registry(root / "registry"), time.monotonic()
    (root / LOG).touch()
    processes: list[BaseProcess] = []
    damaged, known, kills, changed = set[int](), dict[int, int](), 0, 0

    def start(index: int) -> BaseProcess:
        arguments = (f"host-{index}", root, rng.getrandbits(32))
        process = multiprocessing.get_context("fork").Process(target=run_host, args=arguments)
        process.start()
        return process

    try:
        processes += [start(index) for index in range(hosts)]
        while changed < changes:
            damaged.update(damaged_versions(registry, known))
            changed = (root / LOG).read_bytes().count(b"\n")
            for index, process in enumerate(processes):
                is_next = kills < changed // CHANGES_PER_KILL and index == kills % hosts
                if is_next:
                    time.sleep(rng.random() / 50)
                    process.kill()
                    process.join()
                    kills += 1
                if not process.is_alive():
                    processes[index] = start(index)
    finally:
        for process in processes:
            process.kill()
            process.join()
    damaged.update(damaged_versions(registry, {}))
    return {
        **summarize(root / LOG, damaged),
        "kills": kills,
        **_leftovers(registry, hosts),
        "seconds": round(time.monotonic() - started, 1),
    }


def summarize(log: Path, damaged: set[int]) -> dict[str, object]:
    """Count the changes, the errors, the damaged versions and the numbers that were used twice."""
    rows = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    pushed = collections.Counter(row[2] for row in rows if row[2] != "-")
    return {
        "changes": len(rows),
        "published": sum(pushed.values()),
        "not whole": len(damaged | {int(row[2]) for row in rows if row[3] == "True"}),
        "numbers used twice": sum(count > 1 for count in pushed.values()),
        "errors": dict(collections.Counter(row[1] for row in rows if row[1] != "-")),
    }


def _leftovers(registry: Registry, hosts: int) -> dict[str, object]:
    """Count the hidden folders, before and after each host has removed those of its own."""
    folder = registry.root / NAME
    before = len(list(folder.glob(".*")))
    for index in range(hosts):
        with mock.patch.object(publish, "host_id", return_value=f"host-{index}"):
            publish.remove_leftovers(folder)
    return {"leftovers": before, "leftovers after a removal": len(list(folder.glob(".*")))}


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what happened."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust registry")
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="trust-") as folder:
        result = change_registry(Path(folder), options.changes, options.hosts, options.seed)
    for key, value in result.items():
        print(f"{key}: {value}")
    return int(bool(result["not whole"]))
