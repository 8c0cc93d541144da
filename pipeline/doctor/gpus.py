"""Check whether TensorFlow can use this machine's GPUs, and if not, which part is missing.

A GPU needs its device file, the driver, the driver's library, CUDA's libraries, and a TensorFlow
that can load all of them.
"""

import ctypes
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from regard.pipeline.doctor import backends, machine
from regard.pipeline.doctor.checks import Check, installed_version

LIBRARY = "libcuda.so.1"
# One of CUDA's packages that nothing but TensorFlow's extra installs.
CURAND = "nvidia-curand-cu12"
_INSTALL = {
    "index": 'make install ACCELERATOR=cuda, or pip install "regard[pipeline,gpu]"',
    "lock": "make install ACCELERATOR=cuda",
}
_TIMEOUT_SECONDS = 180
_JAX_QUERY = """
import jax
print(sum(device.platform == "gpu" for device in jax.local_devices()))
"""
_TENSORFLOW_QUERY = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
import tensorflow as tf
print(len(tf.config.list_physical_devices("GPU")))
"""


def check(way: str = "index", devices: Path = Path("/dev")) -> Check:
    """Check whether TensorFlow can use the GPUs; a machine without GPUs passes.

    A problem is a warning, never a failure: Regard also runs on the CPU.

    Args:
        way: How Regard is installed: ``lock`` or ``index``.
        devices: The folder of the driver's device files, such as ``nvidia0``.
    """
    gpus, driver_error = machine.query_driver()
    files = sorted(map(str, devices.glob("nvidia[0-9]*")))
    if not (files or gpus or driver_error):
        change = f"with one, run: {_INSTALL.get(way, _INSTALL['index'])}"
        return Check("gpu", "ok", f"no GPU; Regard runs on the CPU ({change})")
    names = "; ".join(gpus) or ", ".join(files) or "no device file /dev/nvidia*"
    problem = _find_problem(gpus, driver_error, way)
    if problem is None:
        if visible := count_visible_gpus(_TENSORFLOW_QUERY):
            return Check("gpu", "ok", f"{names}; visible to TensorFlow: {visible}")
        problem = (
            "TensorFlow finds no GPU",
            (
                "Check CUDA_VISIBLE_DEVICES. To see which library is missing, run: "
                "python -c \"import tensorflow as tf; tf.config.list_physical_devices('GPU')\"."
            ),
        )
    if "jax" in backends.installed_backends() and count_visible_gpus(_JAX_QUERY):
        return Check("gpu", "ok", f"{names}; for training.backend: jax, but {problem[0]}")
    text, remedy = problem
    remedy = f"{remedy} Until then, Regard runs on the CPU."
    return Check("gpu", "warn", f"{names}, but {text}", remedy)


def _find_problem(gpus: Sequence[str], driver_error: str, way: str) -> tuple[str, str] | None:
    """Return what TensorFlow lacks, and its remedy; TensorFlow, which takes seconds, is not asked.

    Args:
        gpus: One line per GPU from nvidia-smi: name, memory, driver version.
        driver_error: The error message of nvidia-smi, if it is installed and lists no GPU.
        way: How Regard is installed.
    """
    if not gpus:
        problem = f"nvidia-smi reports: {driver_error}" if driver_error else "no driver"
        return problem, (
            "Install NVIDIA's driver and restart the machine, so that its kernel module is loaded. "
            "Start containers with --gpus all, and install the NVIDIA Container Toolkit on the "
            "host."
        )
    drivers = [line.rpartition(",")[2].strip() for line in gpus]
    old_drivers = [
        driver for driver in drivers if machine.version_numbers(driver) < backends.CUDA_12_DRIVER
    ]
    if old_drivers:
        minimum = ".".join(map(str, backends.CUDA_12_DRIVER))
        problem = f"driver {', '.join(old_drivers)} is too old for CUDA 12"
        return problem, f"Install driver {minimum} or newer."
    if not _can_load(LIBRARY):
        return f"the driver's library {LIBRARY} cannot be loaded", (
            "In a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility. Otherwise install the "
            "driver's libraries in the version of its kernel module."
        )
    if installed_version(CURAND) is None:
        remedy = f"Run: {_INSTALL.get(way, _INSTALL['index'])}."
        return "no CUDA libraries for TensorFlow", remedy
    return None


def count_visible_gpus(query: str) -> int:
    """Return the number that a program prints in another process; 0 if it fails."""
    command = [sys.executable, "-c", query]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
        return int(result.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
