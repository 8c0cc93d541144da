"""GPU checks: each missing part is a warning with a remedy; no GPU is fine."""

import pytest

from regard.pipeline.doctor import gpus

H200 = "NVIDIA H200, 143771 MiB, 570.86.15"


@pytest.fixture
def check(monkeypatch, tmp_path):
    """Checks a machine on which everything is present, except for what a test changes."""

    def check(
        way="index",
        gpu=(H200,),
        error="",
        library=True,
        curand="10.3",
        visible=1,
        files=(),
        jax=None,
    ):
        monkeypatch.setattr(gpus.machine, "query_driver", lambda: (list(gpu), error))
        monkeypatch.setattr(gpus, "_can_load", lambda _: library)
        monkeypatch.setattr(gpus, "installed_version", lambda _: curand)
        counts = {gpus._TENSORFLOW_QUERY: visible, gpus._JAX_QUERY: jax}
        monkeypatch.setattr(gpus, "count_visible_gpus", counts.get)
        installed = [] if jax is None else ["jax"]
        monkeypatch.setattr(gpus.backends, "installed_backends", lambda: installed)
        for name in files:
            (tmp_path / name).touch()
        return gpus.check(way, tmp_path)

    return check


def test_no_gpu_passes(check):
    result = check(gpu=(), files=["nvidiactl"])
    assert result.status == "ok"
    assert "no GPU" in result.detail
    assert "make install ACCELERATOR=cuda" in result.detail
    assert result.remedy is None


def test_complete_setup_passes(check):
    result = check()
    assert (result.status, result.detail) == ("ok", f"{H200}; visible to TensorFlow: 1")


@pytest.mark.parametrize(
    ("changes", "detail", "remedy"),
    [
        ({"gpu": (), "files": ["nvidia1"]}, "nvidia1, but no driver", "--gpus all"),
        ({"gpu": (), "error": "NVIDIA-SMI has failed"}, "SMI has failed", "kernel module"),
        ({"gpu": ("Tesla V100, 16384 MiB, 470.57.02",)}, "too old for CUDA 12", "525.60.13"),
        ({"library": False}, "libcuda.so.1", "NVIDIA_DRIVER_CAPABILITIES"),
        ({"curand": None}, "no CUDA libraries", "regard[pipeline,gpu]"),
        ({"visible": 0}, "finds no GPU", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_missing_part_is_a_warning_with_a_remedy(check, changes, detail, remedy):
    result = check(**changes)
    assert result.status == "warn"  # never a failure: Regard runs on the CPU
    assert detail in result.detail
    assert remedy in result.remedy
    assert "runs on the CPU" in result.remedy


def test_without_tensorflow_s_libraries_jax_is_enough(check):
    result = check(curand=None, jax=1)
    assert (result.status, result.remedy) == ("ok", None)
    assert "training.backend: jax" in result.detail


def test_jax_must_see_a_gpu_too(check):
    result = check(library=False, jax=0)
    assert result.status == "warn"
    assert "libcuda.so.1" in result.detail


def test_lock_installation_has_its_own_command(check):
    assert "pip" not in check("lock", curand=None).remedy
    assert "make install ACCELERATOR=cuda" in check("lock", curand=None).remedy


@pytest.mark.slow  # imports TensorFlow in another process
def test_no_visible_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus.count_visible_gpus(gpus._TENSORFLOW_QUERY) == 0
    assert gpus.count_visible_gpus(gpus._JAX_QUERY) == 0


def test_visible_gpus_are_counted():
    assert gpus.count_visible_gpus("print('a warning'); print(2)") == 2
