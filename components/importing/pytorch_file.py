"""Read the state dict in a `pytorch_model.bin`, without PyTorch and without executing anything.

`torch.save` writes a zip archive with a pickle, ``data.pkl``, and one uncompressed record for each
storage (``data/0`` …). Before PyTorch 1.6 it wrote pickles and the storages one after another.
Both are read here.
"""

import contextlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from regard.components.importing.state_dict_pickle import PickledTensor, damaged, read_pickle
from regard.components.importing.tensor_file import (
    ELEMENT_TYPES,
    MAX_TENSORS,
    StoredTensor,
    TensorFile,
    open_weights_file,
    quote,
)
from regard.core.errors import UserError

# The pickles of the largest translation models have 400 kB.
MAX_PICKLE_BYTES = 2 << 20
# The directory has about 80 bytes for each record.
MAX_DIRECTORY_BYTES = 4 << 20
_ZIP_MAGIC, _OLD_MAGIC = b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_OLD_PROTOCOL = 1001
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_END_OF_DIRECTORY = struct.Struct("<4s4H2IH")
_CHUNK = 1 << 22

# Where a storage lies in the file: its position and size in bytes.
Block = tuple[int, int]


def read_pytorch(path: str | os.PathLike[str], key: str | None = None) -> TensorFile:
    """Open a file that `torch.save(model.state_dict())` wrote; tensors are read when accessed.

    Args:
        path: the file.
        key: the key of the state dict in a dictionary, as in a checkpoint; None: there is none.

    Raises:
        UserError: it is damaged, incomplete or no such file, or loading it would execute code.
    """
    path = Path(path)
    file, size = open_weights_file(path)
    try:
        head = file.read(len(_OLD_MAGIC))
        file.seek(0)
        if head.startswith(_ZIP_MAGIC):
            content, blocks = _read_zip(path, file, size)
        elif head == _OLD_MAGIC:
            content, blocks = _read_old_format(path, file, size)
        else:
            raise damaged(path, "does not begin as one of PyTorch")
        if key is not None:
            content = content.get(key) if isinstance(content, dict) else None
        return TensorFile(path, file, _tensors(path, content, blocks))
    except BaseException:
        file.close()
        raise


def _tensors(path: Path, content: object, blocks: Mapping[str, Block]) -> dict[str, StoredTensor]:
    if not isinstance(content, dict) or not content:
        raise damaged(path, "contains no dictionary of tensors")
    if len(content) > MAX_TENSORS:
        raise damaged(path, f"has {len(content):,} tensors, more than {MAX_TENSORS:,}")
    tensors = {}
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, PickledTensor):
            raise damaged(path, f"has {quote(name)}, which is not a tensor")
        storage = value.storage
        position, size = blocks.get(storage.key, (0, -1))
        item_size = np.dtype(ELEMENT_TYPES[storage.element_type]).itemsize
        if size != storage.size * item_size:
            raise damaged(path, f"has no data of the right size for the tensor {quote(name)}")
        offset = position + value.offset * item_size
        tensors[name] = StoredTensor(storage.element_type, value.shape, offset, value.strides)
    return tensors


def _read_zip(path: Path, file: BinaryIO, size: int) -> tuple[object, dict[str, Block]]:
    """Return the unpickled content of a zip archive, and its storages."""
    _check_directory(path, file, size)
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(file))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise damaged(path, f"is no complete zip archive ({str(error)[:100]})") from error
        records = archive.infolist()
    names = [record.filename for record in records]
    pickles = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(pickles) != 1 or len(set(names)) < len(names):
        raise damaged(path, "is a zip archive without exactly one data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    if f"{folder}constants.pkl" in names:
        raise UserError(
            "The file is a TorchScript program, not a state dict.",
            str(path),
            "Save the weights with `model.save_pretrained(folder)` of Transformers.",
        )
    blocks = {
        record.filename.removeprefix(folder): _locate(path, file, size, record)
        for record in records
    }
    if sum(length for _, length in blocks.values()) > size:
        raise damaged(path, "has records that overlap")
    for record, block in zip(records, blocks.values(), strict=True):
        _check_sum(path, file, block, record)
    if "byteorder" in blocks and _content(path, file, blocks["byteorder"]) != b"little":
        raise damaged(path, "was written on a machine with another order of bytes")
    content = read_pickle(path, io.BytesIO(_content(path, file, blocks["data.pkl"])))
    storages = {name[5:]: block for name, block in blocks.items() if name.startswith("data/")}
    return content, storages


def _check_directory(path: Path, file: BinaryIO, size: int) -> None:
    """Bound the size of the directory, which `zipfile` reads as a whole."""
    file.seek(max(0, size - _END_OF_DIRECTORY.size))
    end = file.read(_END_OF_DIRECTORY.size)
    if len(end) < _END_OF_DIRECTORY.size or not end.startswith(b"PK\x05\x06"):
        raise damaged(path, "is a zip archive without its end")
    directory = _END_OF_DIRECTORY.unpack(end)[5]
    if directory == 0xFFFFFFFF:  # zip64: 64-bit numbers in a record before
        file.seek(max(0, size - _END_OF_DIRECTORY.size - 20 - 56))
        record = file.read(56)
        directory = int.from_bytes(record[40:48], "little") if record[:4] == b"PK\x06\x06" else -1
    if not 0 <= directory <= MAX_DIRECTORY_BYTES:
        raise damaged(path, f"has more than {MAX_DIRECTORY_BYTES:,} bytes of names")
    file.seek(0)


def _locate(path: Path, file: BinaryIO, size: int, record: zipfile.ZipInfo) -> Block:
    """Return where the bytes of a record lie; they must not be compressed or encrypted."""
    label = f"the record {quote(record.filename)}"
    if record.compress_type or record.file_size != record.compress_size or record.flag_bits & 1:
        raise damaged(path, f"has {label}, which is compressed")
    file.seek(max(0, record.header_offset))  # negative if the archive has lost its start
    header = file.read(_LOCAL_HEADER.size) if 0 <= record.header_offset < size else b""
    if len(header) < _LOCAL_HEADER.size or not header.startswith(_ZIP_MAGIC):
        raise damaged(path, f"has {label} at a wrong position")
    fields = _LOCAL_HEADER.unpack(header)
    position = record.header_offset + _LOCAL_HEADER.size + fields[9] + fields[10]
    if fields[3] or position + record.file_size > size:
        raise damaged(path, f"has {label}, which ends behind the file")
    return position, record.file_size


def _check_sum(path: Path, file: BinaryIO, block: Block, record: zipfile.ZipInfo) -> None:
    total = 0
    for chunk in _chunks(file, block):
        total = zlib.crc32(chunk, total)
    if total != record.CRC:
        raise damaged(path, f"has the record {quote(record.filename)} with a wrong checksum")


def _chunks(file: BinaryIO, block: Block) -> Iterator[bytes]:
    position, rest = block
    file.seek(position)
    while rest:
        chunk = file.read(min(rest, _CHUNK))
        if not chunk:
            return
        rest -= len(chunk)
        yield chunk


def _content(path: Path, file: BinaryIO, block: Block) -> bytes:
    if block[1] > MAX_PICKLE_BYTES:
        raise damaged(path, f"has a pickle of more than {MAX_PICKLE_BYTES:,} bytes")
    return b"".join(_chunks(file, block))


def _read_old_format(path: Path, file: BinaryIO, size: int) -> tuple[object, dict[str, Block]]:
    """Return the content of a file of PyTorch < 1.6, and its storages.

    Five pickles (a magic number, the protocol, properties of the machine, the content, the keys of
    the storages) precede each storage's number of elements, in 8 bytes, and its elements.
    """
    stream = io.BytesIO(file.read(MAX_PICKLE_BYTES))
    read_pickle(path, stream)
    protocol, machine = read_pickle(path, stream), read_pickle(path, stream)
    if protocol != _OLD_PROTOCOL or not isinstance(machine, dict):
        raise damaged(path, "has an unknown version of the format")
    if machine.get("little_endian") is not True:
        raise damaged(path, "was written on a machine with another order of bytes")
    content, keys = read_pickle(path, stream), read_pickle(path, stream)
    item_sizes = _item_sizes(content)
    blocks: dict[str, Block] = {}
    position = stream.tell()
    for key in keys if isinstance(keys, list) else ():
        if not isinstance(key, str) or key not in item_sizes or key in blocks:
            raise damaged(path, f"has the storage {quote(key)}, which no tensor uses")
        file.seek(position)
        length = int.from_bytes(file.read(8), "little") * item_sizes[key]
        if position + 8 + length > size:
            raise damaged(path, "is incomplete")
        blocks[key] = (position + 8, length)
        position += 8 + length
    return content, blocks


def _item_sizes(content: Any) -> dict[str, int]:
    """Return the bytes of an element of each storage."""
    values = content.values() if isinstance(content, dict) else ()
    return {
        value.storage.key: np.dtype(ELEMENT_TYPES[value.storage.element_type]).itemsize
        for value in values
        if isinstance(value, PickledTensor)
    }
