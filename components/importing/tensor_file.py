"""Tensors that lie in a file: which there are, and their values when they are needed."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.core.errors import UserError
from regard.core.regular_files import open_regular

MAX_TENSORS = 100_000
MAX_DIMENSIONS = 8
# The element types that can be read: NumPy's type in the file. BF16 is the upper half of a float32.
ELEMENT_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
    "BOOL": "<u1",
}
_FLOATS = ("F64", "F32", "F16", "BF16")
_HEAD_BYTES = 512


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file.

    Attributes:
        element_type: A key of `ELEMENT_TYPES`.
        shape: The shape.
        offset: The position of the first element in the file, in bytes.
        strides: The distance of neighbours in each dimension, in elements; None if the elements
            lie one after another in the order of C.
    """

    element_type: str
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...] | None = None

    @property
    def item_size(self) -> int:
        """Bytes of an element."""
        return int(np.dtype(ELEMENT_TYPES[self.element_type]).itemsize)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """Number of elements from the first to the last one in the file."""
        if self.strides is None or not self.size:
            return self.size
        pairs = zip(self.shape, self.strides, strict=True)
        return 1 + sum((length - 1) * stride for length, stride in pairs)


class TensorFile(Mapping[str, np.ndarray]):
    """The tensors of an open file by name. A tensor is read from the file at each access.

    Values of floating point types are float32 arrays, all others have the type of the file. So an
    import needs the memory of the tensors that it holds, not that of the whole file.

    Args:
        path: the file, for messages.
        file: the open file, which `close` closes.
        tensors: what it contains. The reader of the format has checked that it lies in the file.
    """

    def __init__(self, path: Path, file: BinaryIO, tensors: Mapping[str, StoredTensor]):
        self.path = path
        self.tensors = tensors
        self._file = file

    def __enter__(self) -> "TensorFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __getitem__(self, name: str) -> np.ndarray:
        """Read a tensor.

        Raises:
            KeyError: the file has no tensor of this name.
            UserError: the file is shorter than it was.
        """
        tensor = self.tensors[name]
        values = np.empty(tensor.span, ELEMENT_TYPES[tensor.element_type])
        self._read(tensor.offset, values)
        if tensor.strides is not None and tensor.size:
            # The reader has bounded the strides, so the view ends with the last value.
            strides = [stride * tensor.item_size for stride in tensor.strides]
            values = np.lib.stride_tricks.as_strided(values, tensor.shape, strides)
        return np.ascontiguousarray(_decode(values, tensor.element_type)).reshape(tensor.shape)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, offset: int, values: np.ndarray) -> None:
        self._file.seek(offset)
        rest = values.data.cast("B") if values.size else memoryview(b"")
        while rest:
            count = self._file.readinto(rest)  # type: ignore[attr-defined]
            if not count:
                raise UserError(
                    "The file became shorter while Regard read it.",
                    str(self.path),
                    "Run the command again when no other program writes the file.",
                )
            rest = rest[count:]


def open_weights_file(path: Path) -> tuple[BinaryIO, int]:
    """Open a file of weights.

    Returns:
        The file at its start, and its size in bytes.

    Raises:
        UserError: it cannot be read, or it is no file of weights: empty, a Git LFS pointer or a
            web page.
    """
    try:
        file = os.fdopen(open_regular(path), "rb")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"The file cannot be opened: {reason}.", str(path), "Check the path and permissions."
        ) from error
    try:
        head = file.read(_HEAD_BYTES)
        check_content(path, head)
        file.seek(0)
        return file, os.fstat(file.fileno()).st_size
    except BaseException:
        file.close()
        raise


def check_content(path: Path, head: bytes) -> None:
    """Refuse what downloads leave in place of a file: nothing, a pointer or a web page.

    Args:
        path: the file.
        head: its first bytes.

    Raises:
        UserError: the content is one of these.
    """
    text = head.lstrip().lower()
    if not head:
        raise UserError("The file is empty.", str(path), "Download it again.")
    if head.startswith(b"version https://git-lfs"):
        raise UserError(
            "The file is a pointer of Git LFS, not the weights.",
            str(path),
            "Run `git lfs install` and `git lfs pull` in the repository of the model.",
        )
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise UserError(
            "The file is a web page, not the weights.",
            str(path),
            "Download the file itself, from an address with `/resolve/` instead of `/blob/`.",
        )


def quote(value: object) -> str:
    """Return a value from a file for a message: one line, at most 80 characters.

    A nested value is only named: one of a pickle may contain itself, or grow exponentially.
    """
    if isinstance(value, str):
        text = ascii(value[:80])
    elif isinstance(value, int | float):
        text = str(value)
    elif isinstance(value, list) and all(isinstance(x, str | int | float) for x in value[:6]):
        text = f"[{', '.join(map(quote, value[:6]))}]"
    else:
        text = f"of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _decode(values: np.ndarray, element_type: str) -> np.ndarray:
    if element_type == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    if element_type == "BOOL":
        return values != 0
    if element_type in _FLOATS:
        with np.errstate(over="ignore"):  # a float64 beyond float32 is infinite
            return values.astype(np.float32, copy=False)
    return values
