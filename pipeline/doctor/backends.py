"""Which backend of the training supports this machine's GPUs, by driver and compute capability."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.pipeline.doctor import machine
from regard.pipeline.doctor.checks import Check, installed_version

Version = tuple[int, ...]

# NVIDIA, "CUDA Compatibility", table of minor version compatibility.
CUDA_12_DRIVER = (525, 60, 13)


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


# TensorFlow's .bazelrc, `cuda_wheel`, and
# its issues 97387, 106653 and 111958: no wheel for Blackwell or for CUDA 13; JAX, "Installation".
WHEELS = (
    WheelSupport(
        backend="tensorflow",
        package="nvidia-curand-cu12",  # which JAX does not want
        install='pip install "regard[pipeline,gpu]"',
        cuda=12,
        driver=CUDA_12_DRIVER,
        oldest=(6, 0),
        newest=(9, 0),
    ),
    WheelSupport(
        backend="jax",
        package="jax-cuda12-plugin",
        install='pip install "jax[cuda12]"',
        cuda=12,
        driver=CUDA_12_DRIVER,
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
    driver, capabilities = _query_gpus()
    return [check_backends(driver, capabilities)] if capabilities else []


def installed_backends() -> list[str]:
    """Return the backends that are installed with libraries for the GPUs of this machine."""
    driver, capabilities = _query_gpus()
    if not capabilities:
        return []
    return [wheel.backend for wheel in _installed(_supporting(driver, capabilities))]


def check_backends(driver: Version, capabilities: Sequence[Version]) -> Check:
    """Report which backends support GPUs.

    Args:
        driver: the version of the driver.
        capabilities: the compute capability of each GPU.
    """
    names = " and ".join(sorted({_text(capability) for capability in capabilities}))
    device = f"driver {_text(driver)}, compute capability {names}"
    supporting = _supporting(driver, capabilities)
    if not supporting:
        remedy = "Train on the CPU: the wheels have no kernels for this GPU."
        if any(_has_kernels(wheel, capabilities) for wheel in WHEELS):
            remedy = "Update the driver; until then, train on the CPU."
        return Check("gpu backends", "warn", f"{device}: no backend supports it", remedy)
    installed = _installed(supporting)
    listed = ", ".join(f"{wheel.backend} with CUDA {wheel.cuda}" for wheel in supporting)
    if installed:
        backends = " and ".join(dict.fromkeys(wheel.backend for wheel in installed))
        detail = f"{device}: {listed}; installed: training.backend: {backends}"
        return Check("gpu backends", "ok", detail)
    remedy = f"Run: {supporting[-1].install}; then set training.backend: {supporting[-1].backend}."
    return Check("gpu backends", "warn", f"{device}: {listed}; none is installed", remedy)


def _query_gpus() -> tuple[Version, list[Version]]:
    """Return the version of the driver, and the compute capability of each GPU."""
    gpus, _ = machine.query_driver()
    if not gpus:
        return (), []
    drivers = [machine.version_numbers(line.rpartition(",")[2].strip()) for line in gpus]
    return min(drivers), machine.query_compute_capabilities()


def _supporting(driver: Version, capabilities: Sequence[Version]) -> list[WheelSupport]:
    """Return the wheels that support a driver and all GPUs."""
    return [wheel for wheel in WHEELS if _supports(wheel, driver, capabilities)]


def _installed(wheels: Sequence[WheelSupport]) -> list[WheelSupport]:
    """Return the wheels that are installed with their libraries for GPUs."""
    return [wheel for wheel in wheels if installed_version(wheel.package) is not None]


def _supports(wheel: WheelSupport, driver: Version, capabilities: Sequence[Version]) -> bool:
    """Whether the wheels work with the driver and on all GPUs."""
    return driver >= wheel.driver and _has_kernels(wheel, capabilities)


def _has_kernels(wheel: WheelSupport, capabilities: Sequence[Version]) -> bool:
    """Whether all GPUs can run the wheels, with a driver that is new enough."""
    if min(capabilities) < wheel.oldest:
        return False
    return wheel.newest is None or max(capabilities) <= wheel.newest


def _text(version: Version) -> str:
    return ".".join(map(str, version))
