"""Part ``numerics``: the parts of ``tests.models.backends`` against TensorFlow's numbers.

The weights and the inputs of the parts come from NumPy's generators with fixed seeds, so that only
the outputs are stored. Products of float32 matrices are computed in full float32 here; a GPU
rounds their inputs to TF32 otherwise, which the tests' tolerances do not allow for.

So far, this part has run on CPUs only.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[2]
_ERROR_CHARACTERS = 500


def _backend_tests() -> Any:
    """Return the module of the tests, also if an installed library has a package ``tests``."""
    if str(_ROOT / "tests") not in getattr(sys.modules.get("tests"), "__path__", ()):
        package = types.ModuleType("tests")
        package.__path__ = [str(_ROOT / "tests")]
        sys.modules["tests"] = package
    from tests.models import test_backends

    return test_backends


def reference(parts: Sequence[str]) -> dict[str, np.ndarray]:
    """Compute the outputs of some parts on the backend of this process.

    Returns:
        Each output as ``backends/<part>/<number>``.
    """
    tests = _backend_tests()
    return {
        f"backends/{part}/{number}": np.asarray(output)
        for part in parts
        for number, output in enumerate(tests.outputs(part))
    }


def compare(parts: Sequence[str], arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    """Compute the parts on the backend of this process, and yield a row for each.

    A part that raises an error has it as ``error``, and the others are still computed.

    Args:
        parts: the names of the parts.
        arrays: what ``reference`` has returned on TensorFlow.
    """
    tests = _backend_tests()
    for part in parts:
        count = sum(name.startswith(f"backends/{part}/") for name in arrays)
        expected = [arrays[f"backends/{part}/{number}"] for number in range(count)]
        row = {"part": part, "outputs": count}
        try:
            outputs = tests.outputs(part)
        except Exception as error:  # a device can fail in many ways
            text = f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS]
            yield {**row, "equal": False, "of_tolerance": None, "error": text}
            continue
        yield {**row, **compare_outputs(outputs, expected, tests.PARTS[part])}


def compare_outputs(
    outputs: Sequence[Any], expected: Sequence[np.ndarray], roundings: int
) -> dict[str, Any]:
    """Return how far outputs are from those of TensorFlow.

    Args:
        outputs: the outputs of a part.
        expected: those of TensorFlow.
        roundings: how many roundings of float32 the tests allow.

    Returns:
        ``equal``, whether every number is within the tolerance of the tests, and ``of_tolerance``,
        the largest difference as a share of it; None if they cannot be subtracted.
    """
    if len(outputs) != len(expected):
        return {"equal": False, "of_tolerance": None}
    ratios = [
        _share_of_tolerance(np.asarray(output, "float64"), other, roundings)
        for output, other in zip(outputs, expected, strict=True)
    ]
    largest = max(ratios, default=0.0)
    of_tolerance = round(largest, 4) if np.isfinite(largest) else None
    return {"equal": largest <= 1.0, "of_tolerance": of_tolerance}


def _share_of_tolerance(output: np.ndarray, expected: np.ndarray, roundings: int) -> float:
    """Return the largest difference as a share of what ``assert_close`` of the tests allows."""
    from tests.tolerances import tolerance

    if output.shape != expected.shape or (np.isnan(output) != np.isnan(expected)).any():
        return float("inf")
    relative = roundings * float(np.finfo("float32").eps)
    allowed = tolerance(expected, roundings=roundings) + relative * np.abs(expected)
    ratios = np.where(output == expected, 0.0, np.abs(output - expected) / allowed)
    return float(np.nanmax(ratios, initial=0.0))
