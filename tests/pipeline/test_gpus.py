"""What the doctor says of GPUs: which part is missing, and nothing alarming where there is none."""

import os
import stat

import pytest

from pipeline import gpus
from pipeline.gpus import Found

H200 = "NVIDIA H200, 143771 MiB, 570.86.15"
SEEN = {"cuda": "12.5.1", "capabilities": [[9, 0]]}
WHOLE = {
    "devices": ("/dev/nvidia0",),
    "listed": (H200,),
    "library": True,
    "cudnn": "9.3",
    "tensorflow": SEEN,
}


def fake_tool(folder, script):
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def test_no_gpu_is_well():
    found = gpus.check(Found())
    assert (found.status, found.found) == ("ok", "no GPU; everything runs on the CPU")
    assert found.remedy is None


def test_all_there():
    found = gpus.check(Found(**WHOLE))
    assert found.status == "ok"
    assert H200 in found.found
    assert "sees 1" in found.found


@pytest.mark.parametrize(
    ("changes", "told", "remedy"),
    [
        ({"listed": ()}, "no driver", "--gpus all"),
        ({"listed": (), "complaint": "NVIDIA-SMI has failed"}, "SMI has failed", "kernel module"),
        ({"listed": ("Tesla V100, 16384 MiB, 470.57.02",)}, "too old for CUDA 12.5.1", "525.60.13"),
        ({"library": False}, "libcuda.so.1", "NVIDIA_DRIVER_CAPABILITIES"),
        ({"cudnn": None, "tensorflow": {}}, "no CUDA libraries", "regard[gpu]"),
        ({"tensorflow": {**SEEN, "capabilities": []}}, "sees none", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(changes, told, remedy):
    found = gpus.check(Found(**{**WHOLE, **changes}))
    assert found.status == "warn"  # never worse: without it the CPU does the work
    assert told in found.found
    assert remedy in found.remedy
    assert "runs on the CPU" in found.remedy


def test_the_lock_has_its_own_command():
    found = gpus.check(Found(**{**WHOLE, "cudnn": None}), "lock")
    assert "requirements/cuda.txt" in found.remedy


def test_looks_at_the_driver(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    found = gpus.look(tmp_path)
    assert (found.devices, found.listed, found.complaint) == ((), (), "")
    (tmp_path / "nvidia1").touch()
    (tmp_path / "nvidiactl").touch()
    fake_tool(tmp_path, f'echo "{H200}"')
    found = gpus.look(tmp_path)
    assert found.devices == (str(tmp_path / "nvidia1"),)
    assert found.listed == (H200,)
    assert found.drivers == {"570.86.15"}
    fake_tool(tmp_path, "echo NVIDIA-SMI has failed; exit 9")
    found = gpus.look(tmp_path)
    assert (found.listed, found.complaint) == ((), "NVIDIA-SMI has failed")
    assert gpus.check(found).status == "warn"


def test_tensorflow_is_asked_in_a_process_of_its_own():
    told = gpus.ask_tensorflow()
    assert told["cuda"].startswith("12.")
    assert isinstance(told["capabilities"], list)
