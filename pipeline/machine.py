"""Facts about the machine: no judgement, nothing but the standard library.

The installer reads them before anything is installed, so this file imports no other of ours.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

GIB = 1 << 30

# The release of glibc from which every wheel of TFX 1.21 installs from the index.
INDEX_GLIBC = (2, 39)


def glibc() -> tuple[int, int] | None:
    """The C library's release such as ``(2, 36)``; None where it is not glibc."""
    name, version = platform.libc_ver()
    if name != "glibc":
        return None
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def install_way(libc: tuple[int, int] | None) -> str:
    """How TFX installs here: ``index``, ``lock`` (older glibc), or ``none`` (no wheels)."""
    if libc is None or platform.machine() != "x86_64":
        return "none"
    return "index" if libc >= INDEX_GLIBC else "lock"


def cores() -> int:
    """The cores this process may use, containers' limits counted."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0] != "max":
        return max(1, min(allowed, round(int(quota[0]) / int(quota[1]))))
    return allowed


def memory() -> tuple[int, int]:
    """Bytes in all and bytes available, containers' limits counted; zeros where unknown."""
    values = {}
    for line in _read("/proc/meminfo").splitlines():
        key, _, rest = line.partition(":")
        values[key] = int(rest.split()[0]) * 1024
    total, available = values.get("MemTotal", 0), values.get("MemAvailable", 0)
    limit = _read("/sys/fs/cgroup/memory.max").strip()
    if limit.isdigit():
        used = _read("/sys/fs/cgroup/memory.current").strip()
        total = min(total, int(limit))
        available = min(available, int(limit) - int(used or 0))
    return total, available


def cpu_flags() -> set[str]:
    """The processor's features as the kernel names them, such as ``avx512_bf16``."""
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def gpus() -> list[str]:
    """One line a GPU as nvidia-smi tells: name, memory, driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]


def facts() -> dict[str, Any]:
    """What the speed of a run depends on, for its record; what is unknown is left out."""
    found = {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": cores(),
        "memory_bytes": memory()[0],
        "gpus": gpus(),
    }
    return {key: value for key, value in found.items() if value}


def existing_parent(path: Path) -> Path:
    """The path itself or the nearest folder above it that is there."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def disk_free(path: Path) -> int:
    """Bytes free where the path is or will be."""
    return shutil.disk_usage(existing_parent(path)).free


def compiler() -> str | None:
    """The C++ compiler that building a source distribution would use."""
    return shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")


def python_headers() -> bool:
    """Whether Python's C headers are installed."""
    return Path(sysconfig.get_path("include"), "Python.h").exists()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
