"""Whether TensorFlow can use this machine's GPUs, and if not, which part is missing.

A GPU needs its device file, the driver and its library, CUDA's libraries and a TensorFlow that
finds them all: `look` looks at one after the other, `check` judges what it has found.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline import machine
from pipeline.checkups import Check, installed

# The oldest driver on Linux for each major release of CUDA, whatever its minor one: NVIDIA, "CUDA
# Compatibility", table of minor version compatibility.
OLDEST_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580,)}
LIBRARY = "libcuda.so.1"
# Of all of CUDA's packages the one that only TensorFlow's extra brings.
CUDNN = "nvidia-cudnn-cu12"
_SECONDS = 180
_ASKED = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
import tensorflow as tf
found = tf.config.list_physical_devices("GPU")
details = map(tf.config.experimental.get_device_details, found)
told = {
    "cuda": tf.sysconfig.get_build_info().get("cuda_version"),
    "capabilities": [one.get("compute_capability") for one in details],
}
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Found:
    """What there is of a GPU.

    Attributes:
        devices: the driver's device files, such as ``/dev/nvidia0``.
        listed: one line a GPU as nvidia-smi tells: name, memory, driver.
        complaint: what nvidia-smi says instead; empty where it lists or is not there.
        library: whether the driver's library can be loaded.
        cudnn: the version of the installed cuDNN; None where there is none.
        tensorflow: ``cuda``, the release of CUDA that TensorFlow is built for, and
            ``capabilities``, the compute capability of every GPU that it sees; empty where it was
            not asked.
    """

    devices: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    complaint: str = ""
    library: bool = False
    cudnn: str | None = None
    tensorflow: dict[str, Any] = field(default_factory=dict)

    @property
    def drivers(self) -> set[str]:
        """The versions of the driver, of which a machine has one."""
        return {line.rpartition(",")[2].strip() for line in self.listed}


def look(devices: Path = Path("/dev")) -> Found:
    """Looks for a GPU; asks TensorFlow, which takes seconds, only where there may be one."""
    listed = tuple(machine.gpus())
    found = Found(
        devices=tuple(sorted(map(str, devices.glob("nvidia[0-9]*")))),
        listed=listed,
        complaint="" if listed else _complaint(),
        library=_loads(LIBRARY),
        cudnn=installed(CUDNN),
    )
    if found.listed and found.library and found.cudnn:
        return Found(**{**vars(found), "tensorflow": ask_tensorflow()})
    return found


def ask_tensorflow() -> dict[str, Any]:
    """What TensorFlow says of CUDA and of the GPUs, in a process of its own; empty if it fails."""
    command = [sys.executable, "-c", _ASKED]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        return json.loads(answer.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}


def check(found: Found, way: str = "index") -> Check:
    """The GPUs and whether TensorFlow can use them; well where there is none.

    Args:
        found: what ``look`` gave.
        way: how Regard is installed: ``lock`` or ``index``.
    """
    if not (found.devices or found.listed or found.complaint):
        return Check("gpu", "ok", "no GPU; everything runs on the CPU")
    if not found.listed:
        said = f"nvidia-smi says: {found.complaint}" if found.complaint else "there is no driver"
        return _ill(
            f"{', '.join(found.devices) or 'no device file /dev/nvidia*'}, but {said}",
            "Install NVIDIA's driver and start the machine again (its kernel module must be "
            "loaded). In a container: start it with --gpus all, with the NVIDIA Container Toolkit "
            "on the host.",
        )
    named = "; ".join(found.listed)
    release = str(found.tensorflow.get("cuda") or "12")
    oldest = OLDEST_DRIVER.get(int(release.partition(".")[0]), ())
    for driver in found.drivers:
        if _figures(driver) < oldest:
            least = ".".join(map(str, oldest))
            message = f"{named}: driver {driver} is too old for CUDA {release}"
            return _ill(message, f"Install a driver of release {least} or newer.")
    if not found.library:
        return _ill(
            f"{named}, but the driver's library {LIBRARY} cannot be loaded",
            "In a container: set NVIDIA_DRIVER_CAPABILITIES=compute,utility. Else install the "
            "driver's libraries, of the same release as its kernel module.",
        )
    if found.cudnn is None:
        command = {
            "lock": "pip install --no-deps --require-hashes -r requirements/cuda.txt",
            "index": 'pip install "regard[gpu]", or in a checkout pip install ".[gpu]"',
        }
        message = f"{named}, but no CUDA libraries for TensorFlow"
        return _ill(message, f"Install them: {command[way if way in command else 'index']}")
    seen = found.tensorflow.get("capabilities", [])
    if not seen:
        return _ill(
            f"{named}, but TensorFlow sees none of them",
            "Is CUDA_VISIBLE_DEVICES set? This tells what it could not load: "
            "python -c \"import tensorflow as tf; tf.config.list_physical_devices('GPU')\"",
        )
    return Check("gpu", "ok", f"{named}; TensorFlow (CUDA {release}) sees {len(seen)}")


def _ill(found: str, remedy: str) -> Check:
    """Never a failure: all of Regard also runs on the CPU."""
    return Check("gpu", "warn", found, f"{remedy} Until then everything runs on the CPU.")


def _complaint() -> str:
    """What nvidia-smi says where it lists no GPU; empty where it is not there."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        answer = subprocess.run([tool], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    lines = [line.strip() for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
    return lines[0] if lines else f"nothing, with status {answer.returncode}"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _figures(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
