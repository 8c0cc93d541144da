"""Check whether TensorFlow can use this machine's GPUs, and if not, which part is missing.

A GPU needs its device file, the driver, the driver's library, CUDA's libraries, and a TensorFlow
that can load all of them.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.pipeline.doctor import machine
from regard.pipeline.doctor.checks import Check, installed_version

# The minimum Linux driver for each major CUDA version: NVIDIA, "CUDA Compatibility", table of minor
# version compatibility.
MIN_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580,)}
LIBRARY = "libcuda.so.1"
# The only one of CUDA's packages that nothing but TensorFlow's extra installs.
CUDNN = "nvidia-cudnn-cu12"
_TIMEOUT_SECONDS = 180
_QUERY = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
import tensorflow as tf
devices = tf.config.list_physical_devices("GPU")
details = map(tf.config.experimental.get_device_details, devices)
print(json.dumps({
    "cuda": tf.sysconfig.get_build_info().get("cuda_version"),
    "capabilities": [detail.get("compute_capability") for detail in details],
}))
"""


@dataclass(frozen=True)
class TensorFlowGpus:
    """The GPU support of TensorFlow.

    Attributes:
        cuda: The CUDA version that TensorFlow is built for; None for a build without CUDA.
        capabilities: The compute capability of each visible GPU.
    """

    cuda: str | None = None
    capabilities: Sequence[Sequence[int] | None] = ()


@dataclass(frozen=True)
class GpuSetup:
    """The GPU setup of a machine.

    Attributes:
        devices: The driver's device files, such as ``/dev/nvidia0``.
        gpus: One line per GPU from nvidia-smi: name, memory, driver version.
        driver_error: The error message of nvidia-smi, if it is installed and lists no GPU.
        has_library: Whether the driver's library can be loaded.
        cudnn: The installed version of cuDNN, if any.
        tensorflow: TensorFlow's view of the GPUs; queried only if everything else is present.
    """

    devices: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    driver_error: str = ""
    has_library: bool = False
    cudnn: str | None = None
    tensorflow: TensorFlowGpus = TensorFlowGpus()

    @property
    def drivers(self) -> set[str]:
        """The driver versions of the GPUs."""
        return {line.rpartition(",")[2].strip() for line in self.gpus}


def detect(devices: Path = Path("/dev")) -> GpuSetup:
    """Detect GPUs. TensorFlow is queried only if it may find one, because that takes seconds."""
    gpus = tuple(machine.gpus())
    setup = GpuSetup(
        devices=tuple(sorted(map(str, devices.glob("nvidia[0-9]*")))),
        gpus=gpus,
        driver_error="" if gpus else _driver_error(),
        has_library=_can_load(LIBRARY),
        cudnn=installed_version(CUDNN),
    )
    if setup.gpus and setup.has_library and setup.cudnn:
        return replace(setup, tensorflow=query_tensorflow())
    return setup


def query_tensorflow() -> TensorFlowGpus:
    """Query TensorFlow's GPU support in a separate process; empty if that fails."""
    command = [sys.executable, "-c", _QUERY]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
        return TensorFlowGpus(**json.loads(result.stdout.strip().splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return TensorFlowGpus()


def check(setup: GpuSetup, way: str = "index") -> Check:
    """Check whether TensorFlow can use the GPUs; a machine without GPUs passes.

    Args:
        setup: The result of ``detect``.
        way: How Regard is installed: ``lock`` or ``index``.
    """
    if not (setup.devices or setup.gpus or setup.driver_error):
        return Check("gpu", "ok", "no GPU; Regard runs on the CPU")
    if not setup.gpus:
        reason = f"nvidia-smi reports: {setup.driver_error}" if setup.driver_error else "no driver"
        return _warning(
            f"{', '.join(setup.devices) or 'no device file /dev/nvidia*'}, but {reason}",
            "Install NVIDIA's driver and restart the machine, so that its kernel module is loaded. "
            "Start containers with --gpus all, and install the NVIDIA Container Toolkit on the "
            "host.",
        )
    names = "; ".join(setup.gpus)
    cuda = str(setup.tensorflow.cuda or "12")
    min_driver = MIN_DRIVER.get(int(cuda.partition(".")[0]), ())
    for driver in setup.drivers:
        if _version_numbers(driver) < min_driver:
            return _warning(
                f"{names}: driver {driver} is too old for CUDA {cuda}",
                f"Install driver {'.'.join(map(str, min_driver))} or newer.",
            )
    if not setup.has_library:
        return _warning(
            f"{names}, but the driver's library {LIBRARY} cannot be loaded",
            "In a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility. Otherwise install the "
            "driver's libraries in the version of its kernel module.",
        )
    if setup.cudnn is None:
        command = 'pip install "regard[gpu]", or in a checkout pip install ".[gpu]"'
        if way == "lock":
            command = "pip install --no-deps --require-hashes -r requirements/cuda.txt"
        return _warning(f"{names}, but no CUDA libraries for TensorFlow", f"Run: {command}.")
    visible = len(setup.tensorflow.capabilities)
    if not visible:
        return _warning(
            f"{names}, but TensorFlow finds no GPU",
            "Check CUDA_VISIBLE_DEVICES. To see which library is missing, run: "
            "python -c \"import tensorflow as tf; tf.config.list_physical_devices('GPU')\".",
        )
    return Check("gpu", "ok", f"{names}; visible to TensorFlow (CUDA {cuda}): {visible}")


def _warning(detail: str, remedy: str) -> Check:
    """A warning, never a failure: Regard also runs on the CPU."""
    return Check("gpu", "warn", detail, f"{remedy} Until then, Regard runs on the CPU.")


def _driver_error() -> str:
    """The first line that nvidia-smi prints; empty if it is not installed."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        result = subprocess.run([tool], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    lines = [line.strip() for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    return lines[0] if lines else f"exit status {result.returncode}"


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
