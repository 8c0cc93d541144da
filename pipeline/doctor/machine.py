"""Facts about the machine: C library, cores, memory, processor, GPUs and disk.

The installer imports this module before any package is installed, so it uses only the standard
library and `core.processor`.
"""

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from regard.core.processor import count_cores

GIB = 1 << 30

# The first glibc for which the package index has all wheels of TFX 1.21.
INDEX_GLIBC = (2, 39)


def glibc() -> tuple[int, int] | None:
    """Return the glibc version, such as ``(2, 36)``; None for another C library."""
    name, version = platform.libc_ver()
    if name != "glibc":
        return None
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def install_way(libc: tuple[int, int] | None) -> str:
    """Return how to install TFX: ``index``, ``lock`` (older glibc) or ``none`` (no wheels)."""
    if libc is None or platform.machine() != "x86_64":
        return "none"
    return "index" if libc >= INDEX_GLIBC else "lock"


def memory() -> tuple[int, int]:
    """Return total and available bytes, including container limits; zeros if unknown."""
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


def query_driver() -> tuple[list[str], str]:
    """Return one line per GPU from nvidia-smi (name, memory, driver version), and its error."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return [], ""
    return _query(tool, "name,memory.total,driver_version")


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Return whether the machine has a device file of an NVIDIA GPU, or nvidia-smi lists a GPU."""
    return any(devices.glob("nvidia[0-9]*")) or bool(query_driver()[0])


def query_compute_capabilities() -> list[tuple[int, ...]]:
    """Return CUDA's compute capability of each GPU; empty if nvidia-smi does not know them."""
    tool = shutil.which("nvidia-smi")
    lines = _query(tool, "compute_cap")[0] if tool is not None else []
    return [version_numbers(line) for line in lines if version_numbers(line)]


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparisons."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _query(tool: str, fields: str) -> tuple[list[str], str]:
    """Return one line per GPU with these fields from nvidia-smi, and its error."""
    query = [tool, f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        result = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return [], str(error)
    if result.returncode:
        lines = (result.stdout + result.stderr).strip().splitlines()
        return [], lines[0].strip() if lines else f"exit status {result.returncode}"
    return [line.strip() for line in result.stdout.splitlines() if line.strip()], ""


def facts() -> dict[str, Any]:
    """Return facts that affect the speed of a run; unknown ones are omitted."""
    values = {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": count_cores(),
        "memory_bytes": memory()[0],
        "gpus": query_driver()[0],
    }
    return {key: value for key, value in values.items() if value}


def free_disk(path: Path) -> int:
    """Return the free bytes on the disk of a path, which need not exist."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
