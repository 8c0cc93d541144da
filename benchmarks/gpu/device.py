"""What a process on JAX tells about its device, and the rate of its matrix products."""

from __future__ import annotations

from typing import Any

import jax

from benchmarks import hardware_limits


def describe() -> dict[str, Any]:
    """Return the device of this process, with the version of CUDA if there is one."""
    device = jax.devices()[0]
    return {
        "device": str(device.device_kind),
        "devices": jax.device_count(),
        "platform": device.platform,
        "platform_version": str(device.client.platform_version).strip(),
    }


def matrix_rates(side: int, seconds: float) -> dict[str, float]:
    """Return the best rate of square matrix products, in operations per second.

    Args:
        side: the rows and columns of the matrices.
        seconds: the duration of each measurement.

    Returns:
        The rate of each number format. In ``float32``, the device multiplies as it does by
        default: an NVIDIA GPU rounds the inputs to TF32.
    """
    rates = {}
    for name in ("float32", "bfloat16"):
        matrix = jax.random.normal(jax.random.key(0), (side, side), name)
        multiply = jax.jit(lambda a, b: a @ b)

        def product(matrix: Any = matrix, multiply: Any = multiply) -> None:
            multiply(matrix, matrix).block_until_ready()

        rates[name] = hardware_limits.best_rate(product, side, seconds)
    return rates


def peak_memory() -> int | None:
    """Return the most bytes that this process has used on the device; None if it is not known."""
    statistics = jax.devices()[0].memory_stats() or {}
    peak = statistics.get("peak_bytes_in_use")
    return None if peak is None else int(peak)
