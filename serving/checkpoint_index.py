"""Read which files and sizes the variables of a SavedModel have, without TensorFlow.

``variables.index`` is a sorted table in LevelDB's format
(https://github.com/google/leveldb/blob/main/doc/table_format.md) without compression. The empty key
holds a ``BundleHeaderProto``, each other key the ``BundleEntryProto`` of one variable
(``tensorflow/core/protobuf/tensor_bundle.proto``).
"""

from collections.abc import Iterator

import google_crc32c

from regard.serving.protobuf import message_class

_FOOTER_BYTES, _TRAILER_BYTES = 48, 5
_MAGIC = bytes.fromhex("57fb808b247547db")
_UNCOMPRESSED = 0
_MAX_SHARDS = 10_000


def shard_sizes(index: bytes) -> list[int]:
    """Return the least size of each shard of variables, in bytes.

    Args:
        index: the content of ``variables.index``.

    Raises:
        ValueError: the index is damaged or incomplete.
    """
    from google.protobuf.message import DecodeError

    sizes: list[int] = []
    try:
        for key, value in _entries(index):
            if not key:  # the first one
                sizes = [0] * _number_of_shards(value)
                continue
            entry = message_class("BundleEntry").FromString(value)
            sizes[entry.shard_id] = max(sizes[entry.shard_id], entry.offset + entry.size)
    except (DecodeError, IndexError):
        raise ValueError("an entry is invalid") from None
    if not sizes:
        raise ValueError("it has no header")
    return sizes


def masked_checksum(content: bytes) -> int:
    """Return the checksum of TFRecord files and tables: CRC-32C, rotated by 15 bits, and a sum."""
    value = google_crc32c.value(content)
    return (value >> 15 | value << 17) + 0xA282EAD8 & 0xFFFFFFFF


def _number_of_shards(header: bytes) -> int:
    number = message_class("BundleHeader").FromString(header).num_shards
    if not 0 < number <= _MAX_SHARDS:
        raise ValueError(f"it names {number} shards")
    return int(number)


def _entries(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a table, in the order of the keys."""
    footer = table[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or not footer.endswith(_MAGIC):
        raise ValueError("its end is missing")
    _, position = _read_handle(footer, 0)  # of the block with metadata
    handle, _ = _read_handle(footer, position)
    for _, value in _block_entries(_read_block(table, handle)):
        yield from _block_entries(_read_block(table, _read_handle(value, 0)[0]))


def _read_handle(content: bytes, position: int) -> tuple[tuple[int, int], int]:
    """Return the offset and size of a block, and the position behind them."""
    offset, position = _read_varint(content, position)
    size, position = _read_varint(content, position)
    return (offset, size), position


def _read_block(table: bytes, handle: tuple[int, int]) -> bytes:
    offset, size = handle
    block = table[offset : offset + size + _TRAILER_BYTES]
    checksum = int.from_bytes(block[size + 1 :], "little")
    if len(block) != size + _TRAILER_BYTES or checksum != masked_checksum(block[: size + 1]):
        raise ValueError("a block is damaged")
    if block[size] != _UNCOMPRESSED:
        raise ValueError("a block is compressed")
    return block[:size]


def _block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a block, whose keys leave out what they share with the previous one."""
    end = len(block) - 4 * (int.from_bytes(block[-4:], "little") + 1)  # where restart points begin
    key, position = b"", 0
    while position < end:
        shared, position = _read_varint(block, position)
        added, position = _read_varint(block, position)
        size, position = _read_varint(block, position)
        key = key[:shared] + block[position : position + added]
        position += added
        yield key, block[position : position + size]
        position += size


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
