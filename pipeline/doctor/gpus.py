"""Check whether TensorFlow can use this machine's GPUs, and if not, which part is missing.

A GPU needs its device file, the driver, the driver's library, CUDA's libraries, and a TensorFlow
that can load all of them.
"""

import ctypes
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from regard.pipeline.doctor import machine
from regard.pipeline.doctor.checks import Check, installed_version

# For CUDA 12: NVIDIA, "CUDA Compatibility", table of minor version compatibility.
MIN_DRIVER = (525, 60, 13)
LIBRARY = "libcuda.so.1"
# The only one of CUDA's packages that nothing but TensorFlow's extra installs.
CUDNN = "nvidia-cudnn-cu12"
_INSTALL = {
    "index": 'pip install "regard[pipeline,gpu]", or in a checkout pip install ".[pipeline,gpu]"',
    "lock": "pip install --no-deps --require-hashes -r requirements/cuda.txt",
}
_TIMEOUT_SECONDS = 180
_QUERY = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
import tensorflow as tf
print(len(tf.config.list_physical_devices("GPU")))
"""


@dataclass(frozen=True)
class GpuSetup:
    """The GPU setup of a machine.

    Attributes:
        devices: The driver's device files, such as ``/dev/nvidia0``.
        gpus: One line per GPU from nvidia-smi: name, memory, driver version.
        driver_error: The error message of nvidia-smi, if it is installed and lists no GPU.
        has_library: Whether the driver's library can be loaded.
        cudnn: The installed version of cuDNN, if any.
        visible: How many GPUs TensorFlow finds; queried only if everything else is present.
    """

    devices: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    driver_error: str = ""
    has_library: bool = False
    cudnn: str | None = None
    visible: int = 0


def detect(devices: Path = Path("/dev")) -> GpuSetup:
    """Detect GPUs. TensorFlow is queried only if it may find one, because that takes seconds."""
    gpus, driver_error = machine.query_driver()
    setup = GpuSetup(
        devices=tuple(sorted(map(str, devices.glob("nvidia[0-9]*")))),
        gpus=tuple(gpus),
        driver_error=driver_error,
        has_library=_can_load(LIBRARY),
        cudnn=installed_version(CUDNN),
    )
    is_complete = setup.gpus and setup.has_library and setup.cudnn
    return replace(setup, visible=count_visible_gpus()) if is_complete else setup


def count_visible_gpus() -> int:
    """Count TensorFlow's GPUs in a separate process; 0 if that fails."""
    command = [sys.executable, "-c", _QUERY]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
        return int(result.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0


def check(setup: GpuSetup, way: str = "index") -> Check:
    """Check whether TensorFlow can use the GPUs; a machine without GPUs passes.

    A problem is a warning, never a failure: Regard also runs on the CPU.

    Args:
        setup: The result of ``detect``.
        way: How Regard is installed: ``lock`` or ``index``.
    """
    if not (setup.devices or setup.gpus or setup.driver_error):
        return Check("gpu", "ok", "no GPU; Regard runs on the CPU")
    names = "; ".join(setup.gpus) or ", ".join(setup.devices) or "no device file /dev/nvidia*"
    drivers = [line.rpartition(",")[2].strip() for line in setup.gpus]
    old_drivers = [driver for driver in drivers if _version_numbers(driver) < MIN_DRIVER]
    min_driver = ".".join(map(str, MIN_DRIVER))
    for is_problem, problem, remedy in (
        (
            not setup.gpus,
            f"nvidia-smi reports: {setup.driver_error}" if setup.driver_error else "no driver",
            "Install NVIDIA's driver and restart the machine, so that its kernel module is loaded. "
            "Start containers with --gpus all, and install the NVIDIA Container Toolkit on the "
            "host.",
        ),
        (
            bool(old_drivers),
            f"driver {', '.join(old_drivers)} is too old for CUDA 12",
            f"Install driver {min_driver} or newer.",
        ),
        (
            not setup.has_library,
            f"the driver's library {LIBRARY} cannot be loaded",
            "In a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility. Otherwise install the "
            "driver's libraries in the version of its kernel module.",
        ),
        (
            setup.cudnn is None,
            "no CUDA libraries for TensorFlow",
            f"Run: {_INSTALL.get(way, _INSTALL['index'])}.",
        ),
        (
            not setup.visible,
            "TensorFlow finds no GPU",
            "Check CUDA_VISIBLE_DEVICES. To see which library is missing, run: "
            "python -c \"import tensorflow as tf; tf.config.list_physical_devices('GPU')\".",
        ),
    ):
        if is_problem:
            remedy = f"{remedy} Until then, Regard runs on the CPU."
            return Check("gpu", "warn", f"{names}, but {problem}", remedy)
    return Check("gpu", "ok", f"{names}; visible to TensorFlow: {setup.visible}")


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
