"""Read files in the format safetensors.

The format is a header length (8 bytes, little-endian), a JSON object of the tensors and their
bytes (https://github.com/huggingface/safetensors#format). The package of that name is no
dependency: its NumPy functions cannot read bfloat16 and copy the whole file, and its messages do
not say what to do.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from regard.components.importing.tensor_file import (
    ELEMENT_TYPES,
    MAX_DIMENSIONS,
    MAX_TENSORS,
    StoredTensor,
    TensorFile,
    open_weights_file,
    quote,
)
from regard.core.errors import UserError

# The format allows 100 MB. The headers of the largest translation models have 300 kB.
MAX_HEADER_BYTES = 4 << 20
_DOWNLOAD = "Download the file again, and compare its size with the one in the repository."
_CONVERT = "Save the model with `model.float().save_pretrained(folder)`, and import that folder."


def read_safetensors(path: str | os.PathLike[str]) -> TensorFile:
    """Open a .safetensors file; tensors are read when they are accessed.

    Args:
        path: the file.

    Raises:
        UserError: it is damaged, incomplete or no such file, or it has an unsupported type.
    """
    path = Path(path)
    file, size = open_weights_file(path)
    try:
        return TensorFile(path, file, _read_header(path, file, size))
    except BaseException:
        file.close()
        raise


def _read_header(path: Path, file: BinaryIO, size: int) -> dict[str, StoredTensor]:
    start = file.read(8)
    if start.startswith(b"PK\x03\x04"):
        raise UserError(
            "The file is a zip archive, not a safetensors file.",
            str(path),
            "If it is a file of PyTorch, rename it to `pytorch_model.bin`.",
        )
    length = int.from_bytes(start, "little")
    if size < 10 or length > size - 8:
        raise UserError(
            f"The file has {size:,} bytes, and its header should have {length:,}. It is incomplete "
            "or no safetensors file.",
            str(path),
            _DOWNLOAD,
        )
    if length > MAX_HEADER_BYTES:
        raise _damaged(path, f"its header has {length:,} bytes, more than {MAX_HEADER_BYTES:,}")
    entries = _parse(path, file.read(length))
    if len(entries) > MAX_TENSORS:
        raise _damaged(path, f"it has {len(entries):,} tensors, more than {MAX_TENSORS:,}")
    spans: list[tuple[int, int, str]] = []
    tensors = {}
    for name, entry in entries.items():
        tensors[name], end = _tensor(path, name, entry, 8 + length)
        spans.append((tensors[name].offset, end, name))
    _check_spans(path, spans, 8 + length, size)
    return tensors


def _parse(path: Path, header: bytes) -> dict[str, Any]:
    """Parse the JSON object of a header, without its metadata."""
    try:
        content = json.loads(header.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _damaged(path, f"its header is not valid JSON: {reason[:200]}") from error
    if not isinstance(content, dict):
        raise _damaged(path, "its header is not a JSON object")
    content.pop("__metadata__", None)
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name stands in it twice")
    return content


def _tensor(path: Path, name: str, entry: object, start: int) -> tuple[StoredTensor, int]:
    """Return a checked tensor and the position of its end in the file."""
    label = f"the tensor {quote(name)}"
    if not isinstance(entry, Mapping):
        raise _damaged(path, f"{label} is not described by an object")
    kind, shape, span = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(kind, str):
        raise _damaged(path, f"{label} has no element type")
    if kind not in ELEMENT_TYPES:
        raise UserError(
            f"{label.capitalize()} has the element type {quote(kind)}, which Regard cannot read.",
            str(path),
            f"Quantized models cannot be imported. {_CONVERT}",
        )
    sizes, positions = _sizes(shape), _sizes(span)
    if sizes is None or len(sizes) > MAX_DIMENSIONS:
        raise _damaged(path, f"{label} has an invalid shape")
    if positions is None or len(positions) != 2 or positions[0] > positions[1]:
        raise _damaged(path, f"{label} has an invalid range of bytes")
    begin, end = positions
    tensor = StoredTensor(kind, sizes, start + begin)
    expected = math.prod(sizes) * tensor.item_size
    if expected != end - begin:
        raise _damaged(path, f"{label} of shape {sizes} needs {expected} bytes, not {end - begin}")
    return tensor, start + end


def _sizes(value: object) -> tuple[int, ...] | None:
    """Return a JSON list of integers from 0 to 2**63; None for any other value."""
    if not isinstance(value, list):
        return None
    if any(type(item) is not int or not 0 <= item < 1 << 63 for item in value):
        return None
    return tuple(value)


def _check_spans(path: Path, spans: list[tuple[int, int, str]], start: int, size: int) -> None:
    """Check that the tensors fill the rest of the file without gaps, as the format requires."""
    for begin, end, name in sorted(spans):
        if end > size:
            raise _damaged(
                path, f"the tensor {quote(name)} ends at byte {end:,} of {size:,}: it is incomplete"
            )
        if begin != start:
            problem = "overlaps another one" if begin < start else "follows unused bytes"
            raise _damaged(path, f"the tensor {quote(name)} {problem}")
        start = end
    if start != size:
        raise _damaged(path, f"{size - start:,} bytes at its end belong to no tensor")


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(f"The safetensors file is damaged: {reason}.", str(path), _DOWNLOAD)
