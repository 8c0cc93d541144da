"""Which backends support which GPUs and drivers."""

import pytest

from regard.pipeline.doctor import backends, machine
from regard.pipeline.doctor.backends import check_backends

HOPPER, BLACKWELL, PASCAL, KEPLER = (9, 0), (12, 0), (6, 1), (3, 7)
NEW, OLD, ANCIENT = (580, 65, 6), (550, 54, 14), (470, 57, 2)


@pytest.fixture
def install(monkeypatch):
    """Pretends that only these packages are installed."""

    def install(*packages):
        monkeypatch.setattr(
            backends, "installed_version", lambda name: "1" if name in packages else None
        )

    return install


@pytest.mark.parametrize(
    ("driver", "capabilities", "supporting"),
    [
        (NEW, [HOPPER], ["tensorflow with CUDA 12", "jax with CUDA 12", "jax with CUDA 13"]),
        (NEW, [BLACKWELL], ["jax with CUDA 12", "jax with CUDA 13"]),
        (NEW, [HOPPER, BLACKWELL], ["jax with CUDA 12", "jax with CUDA 13"]),
        (OLD, [HOPPER], ["tensorflow with CUDA 12", "jax with CUDA 12"]),
        (NEW, [PASCAL], ["tensorflow with CUDA 12", "jax with CUDA 12"]),
        (ANCIENT, [HOPPER], []),
        (NEW, [KEPLER], []),
    ],
)
def test_backends_by_driver_and_capability(driver, capabilities, supporting, install):
    install()
    result = check_backends(driver, capabilities)
    every = [f"{wheel.backend} with CUDA {wheel.cuda}" for wheel in backends.WHEELS]
    assert [name for name in every if name in result.detail] == supporting
    assert result.status == "warn"  # nothing is installed
    assert bool(supporting) == ("pip install" in (result.remedy or ""))


@pytest.mark.parametrize(
    ("capability", "package", "status"),
    [
        (HOPPER, "nvidia-curand-cu12", "ok"),
        (BLACKWELL, "nvidia-curand-cu12", "warn"),  # TensorFlow's wheels have no kernels for it
        (BLACKWELL, "jax-cuda13-plugin", "ok"),
    ],
)
def test_an_installed_backend_must_support_the_gpu(capability, package, status, install):
    install(package)
    result = check_backends(NEW, [capability])
    assert result.status == status
    if status == "warn":
        assert "training.backend: jax" in result.remedy


@pytest.mark.parametrize(
    ("gpus", "capabilities", "count"),
    [
        ([], [], 0),
        (["NVIDIA H200, 143771 MiB, 580.65.06"], [], 0),  # an old nvidia-smi
        (["NVIDIA H200, 143771 MiB, 580.65.06"], [HOPPER], 1),
    ],
)
def test_only_known_gpus_are_checked(gpus, capabilities, count, monkeypatch, install):
    install()
    monkeypatch.setattr(machine, "query_driver", lambda: (gpus, ""))
    monkeypatch.setattr(machine, "query_compute_capabilities", lambda: capabilities)
    assert len(backends.check()) == count
