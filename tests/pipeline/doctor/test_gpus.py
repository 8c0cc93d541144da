"""GPU checks: each missing part is a warning with a remedy; no GPU is fine."""

import pytest

from regard.pipeline.doctor import gpus
from regard.pipeline.doctor.gpus import GpuSetup

H200 = "NVIDIA H200, 143771 MiB, 570.86.15"
COMPLETE = {
    "devices": ("/dev/nvidia0",),
    "gpus": (H200,),
    "has_library": True,
    "cudnn": "9.3",
    "visible": 1,
}


def test_no_gpu_passes():
    result = gpus.check(GpuSetup())
    assert (result.status, result.detail) == ("ok", "no GPU; Regard runs on the CPU")
    assert result.remedy is None


def test_complete_setup_passes():
    result = gpus.check(GpuSetup(**COMPLETE))
    assert result.status == "ok"
    assert H200 in result.detail
    assert "visible to TensorFlow: 1" in result.detail


@pytest.mark.parametrize(
    ("changes", "detail", "remedy"),
    [
        ({"gpus": ()}, "no driver", "--gpus all"),
        ({"gpus": (), "driver_error": "NVIDIA-SMI has failed"}, "SMI has failed", "kernel module"),
        ({"gpus": ("Tesla V100, 16384 MiB, 470.57.02",)}, "too old for CUDA 12", "525.60.13"),
        ({"has_library": False}, "libcuda.so.1", "NVIDIA_DRIVER_CAPABILITIES"),
        ({"cudnn": None}, "no CUDA libraries", "regard[pipeline,gpu]"),
        ({"visible": 0}, "finds no GPU", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_missing_part_is_a_warning_with_a_remedy(changes, detail, remedy):
    result = gpus.check(GpuSetup(**{**COMPLETE, **changes}))
    assert result.status == "warn"  # never a failure: Regard runs on the CPU
    assert detail in result.detail
    assert remedy in result.remedy
    assert "runs on the CPU" in result.remedy


def test_lock_installation_has_its_own_command():
    result = gpus.check(GpuSetup(**{**COMPLETE, "cudnn": None}), "lock")
    assert "requirements/cuda.txt" in result.remedy


def test_detect_driver(monkeypatch, tmp_path):
    (tmp_path / "nvidia1").touch()
    (tmp_path / "nvidiactl").touch()
    for driver in (([H200], ""), ([], "NVIDIA-SMI has failed")):
        monkeypatch.setattr(gpus.machine, "query_driver", lambda driver=driver: driver)
        setup = gpus.detect(tmp_path)
        assert setup.devices == (str(tmp_path / "nvidia1"),)
        assert (list(setup.gpus), setup.driver_error) == driver


@pytest.mark.slow  # imports TensorFlow in another process
def test_no_visible_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus.count_visible_gpus() == 0


def test_visible_gpus_are_counted(monkeypatch):
    monkeypatch.setattr(gpus, "_QUERY", "print('a warning'); print(2)")
    assert gpus.count_visible_gpus() == 2
