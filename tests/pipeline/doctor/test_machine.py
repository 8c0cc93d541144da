"""Facts about the machine from simulated kernel files and tools."""

import os

import pytest

from regard.pipeline.doctor import machine


@pytest.mark.parametrize(
    ("libc", "processor", "way"),
    [
        ((2, 38), "x86_64", "lock"),
        ((2, 39), "x86_64", "index"),
        ((2, 41), "aarch64", "none"),
        (None, "x86_64", "none"),
    ],
)
def test_install_way(monkeypatch, libc, processor, way):
    monkeypatch.setattr(machine.platform, "machine", lambda: processor)
    assert machine.install_way(libc) == way


@pytest.mark.parametrize(
    ("version", "expected"), [(("glibc", "2.36"), (2, 36)), (("", ""), None), (("musl", "1"), None)]
)
def test_glibc(monkeypatch, version, expected):
    monkeypatch.setattr(machine.platform, "libc_ver", lambda: version)
    assert machine.glibc() == expected


def set_kernel_files(monkeypatch, files):
    monkeypatch.setattr(machine, "_read", lambda path: files.get(path, ""))


def test_memory_respects_a_container_limit(monkeypatch):
    meminfo = "MemTotal:       16 kB\nMemFree:  1 kB\nMemAvailable:    12 kB\nHugePages_Total: 0\n"
    set_kernel_files(monkeypatch, {"/proc/meminfo": meminfo})
    assert machine.memory() == (16 * 1024, 12 * 1024)
    cgroup = {"/sys/fs/cgroup/memory.max": "8192\n", "/sys/fs/cgroup/memory.current": "1024\n"}
    set_kernel_files(monkeypatch, {"/proc/meminfo": meminfo, **cgroup})
    assert machine.memory() == (8192, 7168)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (None, ([], "")),
        ('echo "NVIDIA H200, 143771 MiB, 570.1"; echo', (["NVIDIA H200, 143771 MiB, 570.1"], "")),
        ("echo no driver >&2; exit 9", ([], "no driver")),
        ("exit 9", ([], "exit status 9")),
    ],
)
def test_query_driver(monkeypatch, tmp_path, script, expected):
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    if script is not None:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    assert machine.query_driver() == expected


def test_free_disk_of_a_missing_folder(tmp_path):
    assert machine.free_disk(tmp_path / "a" / "b") > 0


def test_unknown_facts_are_omitted(monkeypatch):
    set_kernel_files(monkeypatch, {})
    monkeypatch.setattr(machine, "count_cores", lambda: 2)
    monkeypatch.setattr(machine.shutil, "which", lambda _: None)
    facts = machine.facts()
    assert facts["cores"] == 2
    assert facts.keys() == {"system", "python", "cores"}
