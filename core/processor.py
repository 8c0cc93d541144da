"""The cores that a process may use, and the features of the processor.

It uses only the standard library.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")

# Features with products of bfloat16, as the kernel names them.
_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16"})


def count_cores(cgroups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Return the number of cores that this process may use.

    ``os.cpu_count`` is the number of cores of the machine. The affinity of the process, a
    container or a systemd unit may allow fewer; a limit of 1.5 cores counts as 2.

    Args:
        cgroups: where the control groups of the system are mounted, of version 1 or 2.
        membership: the file that names the groups of this process.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    for quota, period in _read_quotas(cgroups, membership):
        cores = min(cores, math.ceil(quota / period))
    return max(cores, 1)


def _read_quotas(cgroups: Path, membership: Path) -> Iterator[tuple[int, int]]:
    """Yield the limits of the groups of this process: processor time in a period."""
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = cgroups / controllers  # none in version 2
        group = mount / path.lstrip("/")
        # In a container the path may be that of the host, and the mount the container's own group.
        while group.is_relative_to(mount):
            if controllers:
                limit = [_read(group / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
            else:
                limit = _read(group / "cpu.max").split()
            if len(limit) == 2 and all(text.strip().isdecimal() for text in limit):
                quota, period = map(int, limit)
                if quota and period:
                    yield quota, period
            group = group.parent


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_features() -> set[str]:
    """Return the features as the kernel names them, such as ``avx512_bf16``; none if unknown."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def has_fast_bfloat16(features: set[str]) -> bool:
    """Return whether products of bfloat16 are faster than those of float32."""
    return bool(features & _BFLOAT16)


def describe_slow_precision(precision: str, features: set[str]) -> str:
    """Explain that a precision is slower than float32 on a processor.

    Args:
        precision: ``training.precision``.
        features: the features of the processor.

    Returns:
        An empty text if it is not slower, or if the features are unknown.
    """
    if precision != "mixed_bfloat16" or not features or has_fast_bfloat16(features):
        return ""
    return (
        f"training.precision: {precision} is slower than float32 on this processor, which has"
        " neither AVX512-BF16 nor AMX. Use auto or float32, or train on a GPU."
    )
