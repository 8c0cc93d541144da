"""One row for the default signature of a model, to find out whether the model can run."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.core.regular_files import read_regular
from regard.serving import warmup_requests
from regard.serving.check_inputs import parse_row
from regard.serving.contract import (
    DEFAULT_SIGNATURE,
    IN_MEMORY,
    WARMUP,
    SavedModelError,
    read_contract,
)
from regard.serving.protobuf import numpy_type, read_tensor
from regard.serving.saved_model import batch_inputs
from regard.serving.session import Signature

_MAX_VALUES = 1 << 20  # of a row that is made up
_MAX_STORED_BYTES = 256 << 20
_TEXT = b"a"


class SampleRow(NamedTuple):
    """A batch of one row.

    Attributes:
        inputs: arrays by name.
        is_real: whether it is a row of the model's data.
    """

    inputs: Mapping[str, np.ndarray]
    is_real: bool


def find_row(path: Path, signature: Signature) -> SampleRow | None:
    """Return a row for the default signature of a model.

    It comes from the model's warm-up requests or stored outputs, if it has them; otherwise it is
    made of zeros and short texts.

    Args:
        path: the model's folder.
        signature: its default signature.

    Returns:
        The row; None if a made one would be too large, or of an unsupported type.
    """
    inputs = _from_warm_up(path) or _from_stored_outputs(path)
    if inputs is not None:
        return SampleRow(inputs, is_real=True)
    arrays = {name: _make(info) for name, info in signature.inputs.items()}
    complete = {name: array for name, array in arrays.items() if array is not None}
    return SampleRow(complete, is_real=False) if len(complete) == len(arrays) else None


def _from_warm_up(path: Path) -> dict[str, np.ndarray] | None:
    """Return the first warm-up request for the default signature."""
    try:
        for request in warmup_requests.iterate(path / WARMUP):
            if request.model_spec.signature_name in ("", DEFAULT_SIGNATURE):
                return {entry.key: read_tensor(entry.value) for entry in request.inputs}
    except (OSError, ValueError, KeyError, TypeError, OverflowError):  # the warm-up reports it
        pass
    return None


def _from_stored_outputs(path: Path) -> dict[str, np.ndarray] | None:
    """Return the first row with outputs that the Trainer has stored."""
    try:
        (row, *_) = json.loads(read_regular(path / IN_MEMORY, _MAX_STORED_BYTES))
        contract = read_contract(path)
        entries = contract["signatures"][DEFAULT_SIGNATURE]["inputs"]
        return batch_inputs(entries, [parse_row(row, contract).inputs])
    except (OSError, SavedModelError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _make(info: Any) -> np.ndarray | None:
    """Return an array that fits an input, with sizes of 1 where any is allowed."""
    dtype = numpy_type(info.dtype)
    sizes = [dim.size if dim.size >= 0 else 1 for dim in info.tensor_shape.dim]
    if info.tensor_shape.unknown_rank:
        sizes = [1]
    if dtype is None or math.prod(sizes) > _MAX_VALUES:
        return None
    if dtype == "object":
        return np.full(sizes, _TEXT, object)
    import ml_dtypes  # noqa: F401  (NumPy's bfloat16)

    return np.zeros(sizes, dtype)
