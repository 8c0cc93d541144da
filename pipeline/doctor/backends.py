"""Which backend of the training supports this machine's GPUs, by driver and compute capability."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.pipeline.doctor import machine
from regard.pipeline.doctor.checks import Check, installed_version

Version = tuple[int, ...]


@dataclass(frozen=True)
class WheelSupport:
    """What the wheels of a library support.

    Attributes:
        backend: the value of ``training.backend``.
        package: a package that is installed with the libraries for GPUs only.
        install: how to install it.
        cuda: the version of CUDA.
        driver: the oldest driver.
        oldest: the lowest compute capability of a GPU.
        newest: the highest one with kernels; None: those of newer GPUs are compiled for them.
    """

    backend: str
    package: str
    install: str
    cuda: int
    driver: Version
    oldest: Version
    newest: Version | None = None


# NVIDIA, "CUDA Compatibility", table of minor versions; TensorFlow's .bazelrc, `cuda_wheel`, and
# its issues 97387, 106653 and 111958: no wheel for Blackwell or for CUDA 13; JAX, "Installation".
WHEELS = (
    WheelSupport(
        backend="tensorflow",
        package="nvidia-cudnn-cu12",
        install='pip install "regard[pipeline,gpu]"',
        cuda=12,
        driver=(525, 60, 13),
        oldest=(6, 0),
        newest=(9, 0),
    ),
    WheelSupport(
        backend="jax",
        package="jax-cuda12-plugin",
        install='pip install "jax[cuda12]"',
        cuda=12,
        driver=(525, 60, 13),
        oldest=(5, 2),
    ),
    WheelSupport(
        backend="jax",
        package="jax-cuda13-plugin",
        install='pip install "regard[jax-cuda]"',
        cuda=13,
        driver=(580,),
        oldest=(7, 5),
    ),
)


def check() -> list[Check]:
    """Report which backends support the GPUs of this machine; empty if it has none."""
    gpus, _ = machine.query_driver()
    capabilities = machine.query_compute_capabilities()
    if not (gpus and capabilities):
        return []
    driver = min(machine.version_numbers(line.rpartition(",")[2].strip()) for line in gpus)
    return [check_backends(driver, capabilities)]


def check_backends(driver: Version, capabilities: Sequence[Version]) -> Check:
    """Report which backends support GPUs.

    Args:
        driver: the version of the driver.
        capabilities: the compute capability of each GPU.
    """
    names = " and ".join(sorted({_text(capability) for capability in capabilities}))
    device = f"driver {_text(driver)}, compute capability {names}"
    supporting = [wheel for wheel in WHEELS if _supports(wheel, driver, capabilities)]
    if not supporting:
        remedy = "Update the driver, or train on the CPU."
        return Check("gpu backends", "warn", f"{device}: no backend supports it", remedy)
    installed = [wheel for wheel in supporting if installed_version(wheel.package) is not None]
    listed = ", ".join(f"{wheel.backend} with CUDA {wheel.cuda}" for wheel in supporting)
    if installed:
        backends = " and ".join(dict.fromkeys(wheel.backend for wheel in installed))
        detail = f"{device}: {listed}; installed: training.backend: {backends}"
        return Check("gpu backends", "ok", detail)
    remedy = f"Run: {supporting[-1].install}; then set training.backend: {supporting[-1].backend}."
    return Check("gpu backends", "warn", f"{device}: {listed}; none is installed", remedy)


def _supports(wheel: WheelSupport, driver: Version, capabilities: Sequence[Version]) -> bool:
    """Whether the wheels work with the driver and on all GPUs."""
    if driver < wheel.driver or min(capabilities) < wheel.oldest:
        return False
    return wheel.newest is None or max(capabilities) <= wheel.newest


def _text(version: Version) -> str:
    return ".".join(map(str, version))
