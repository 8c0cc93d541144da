"""Build small image files with much work, and measure the processor time of each in the graph.

    python -m benchmarks.trust images

Prints the size of each file, the seconds that the exported graph takes to decode or refuse it, and
the result. The exit status is 1 if one takes more than 2 s, or its refusal more than 0.05 s.
"""

from __future__ import annotations

import argparse
import io
import struct
import time
import zlib
from collections.abc import Callable

MAX_SECONDS, MAX_REFUSAL_SECONDS = 2.0, 0.05
_MAX_BYTES = 16_000_000
_SIZE = struct.pack(">II", 1, 1)
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# The passes of Adam7: first column and row, steps of columns and rows.
_ADAM7 = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)


def main(arguments: list[str]) -> int:
    """Measure every file, and return the exit status."""
    parser = argparse.ArgumentParser(prog="images", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names; all files without them")
    names = parser.parse_args(arguments).names

    import tensorflow as tf

    from regard.models.tasks.image_decoding import decode_images

    decode = tf.function(
        lambda images: decode_images(images, 64, 64), [tf.TensorSpec([None], tf.string)]
    )
    decode([_jpeg() + bytes(_MAX_BYTES)])  # starts the threads and takes memory
    status = 0
    for name, build in FILES.items():
        if names and not any(part in name for part in names):
            continue
        content, result, limit = build()[:_MAX_BYTES], "decoded", MAX_SECONDS
        start = time.process_time()
        try:
            decode([content])
        except tf.errors.OpError as error:
            result, limit = str(error).partition("}} ")[2].splitlines()[0], MAX_REFUSAL_SECONDS
        seconds = time.process_time() - start
        is_slow = seconds > (limit if "assertion" in result else MAX_SECONDS)
        status |= is_slow
        mark = "  SLOW" if is_slow else ""
        print(f"{name:26} {len(content):10,} bytes {seconds:6.2f} s  {result}{mark}", flush=True)
    return status


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(
    width: int,
    height: int,
    depth: int = 8,
    color: int = 2,
    interlaced: bool = False,
    extra: bytes = b"",
) -> bytes:
    """A PNG of zeros with the most expensive filter; ``extra`` are chunks after the header."""
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    compressor, data = zlib.compressobj(9), []
    for left, top, columns, rows in passes:
        size = (len(range(left, width, columns)) * depth * _CHANNELS[color] + 7) // 8
        line = b"\4" + bytes(size)
        data += [compressor.compress(line) for _ in range(top, height, rows)]
    data.append(compressor.flush())
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    chunks = _chunk(b"IHDR", header) + extra + _chunk(b"IDAT", b"".join(data))
    return b"\x89PNG\r\n\x1a\n" + chunks + _chunk(b"IEND", b"")


def _text(kind: bytes = b"zTXt", between: bytes = b"\0\0") -> bytes:
    """A compressed text of nearly the size that the decoder limits."""
    return _chunk(kind, b"a" + between + zlib.compress(bytes(7_900_000), 9))


def _jpeg(side: int = 16, **options: object) -> bytes:
    import numpy as np
    from PIL import Image

    small = np.random.default_rng(0).integers(0, 256, (side // 8, side // 8, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC).save(
        stream, "jpeg", **options
    )
    return stream.getvalue()


def _scans(count: int, side: int, data: bytes = b"") -> bytes:
    """A progressive JPEG of many scans that contain nothing, or always the same.

    The code of their only symbol, the end of a block, is one zero bit.
    """
    table = b"\xff\xc4\0\x14\x10\1" + bytes(16)
    content = _jpeg(progressive=True)
    size, scan = content.index(b"\xff\xc2") + 5, content.index(b"\xff\xda")
    head = content[:size] + struct.pack(">HH", side, side) + content[size + 4 : scan + 14]
    scan = b"\xff\xda\0\x08\1\1\0\1\x3f\0" + data
    return head + table + scan * (count - 1) + b"\xff\xd9"


def _segments(segment: bytes) -> bytes:
    content = _jpeg()
    return content[:2] + segment * (_MAX_BYTES // len(segment) - 1000) + content[2:]


FILES: dict[str, Callable[[], bytes]] = {
    "png 64 MP": lambda: _png(8000, 8000),
    "png 64 MP, 10 texts": lambda: _png(8000, 8000, extra=_text() * 10),
    "png 64 MP, RGBA of 16 bits": lambda: _png(8000, 8000, 16, 6),
    "png 24 MP, RGBA of 16 bits": lambda: _png(6000, 4000, 16, 6),
    "png 64 MP, interlaced": lambda: _png(8000, 8000, interlaced=True),
    "png 32 MP, interlaced": lambda: _png(8000, 4000, interlaced=True),
    "png 64 MP, 1 bit": lambda: _png(8000, 8000, 1, 0),
    "png 65535 x 976": lambda: _png(65_535, 976),
    "png 976 x 65535": lambda: _png(976, 65_535),
    "png 1 x 64000000": lambda: _png(1, 1).replace(_SIZE, struct.pack(">II", 1, 64_000_000)),
    "png 2000 zTXt": lambda: _png(8, 8, extra=_text() * 2000),
    "png 2000 iTXt": lambda: _png(8, 8, extra=_text(b"iTXt", b"\0\1\0\0\0") * 2000),
    "png 2000 iCCP": lambda: _png(8, 8, extra=_text(b"iCCP") * 2000),
    "png tEXt": lambda: _png(8, 8, extra=_chunk(b"tEXt", b"a\0b") * 1_000_000),
    "png fcTL (APNG)": lambda: _png(8, 8, extra=_chunk(b"fcTL", bytes(26)) * 400_000),
    "png sPLT": lambda: _png(8, 8, extra=_chunk(b"sPLT", b"a\0\x08" + bytes(60)) * 200_000),
    "png empty IDAT": lambda: _png(8, 8, extra=_chunk(b"IDAT", b"") * 1_300_000),
    "jpeg 1000 scans of 64 MP": lambda: _scans(1000, 8000),
    "jpeg 100 scans of 64 MP": lambda: _scans(100, 8000),
    "jpeg 31 scans of 64 MP": lambda: _scans(31, 8000),
    "jpeg 31 full scans, 64 MP": lambda: _scans(31, 8000, bytes(500_000)),
    "jpeg 100 scans of 16 MP": lambda: _scans(100, 4000),
    "jpeg 1000000 scans": lambda: _scans(1_000_000, 8),
    "jpeg comments": lambda: _segments(b"\xff\xfe\0\2"),
    "jpeg DQT": lambda: _segments(b"\xff\xdb\0\x43\0" + b"\1" * 64),
    "jpeg DHT": lambda: _segments(b"\xff\xc4\0\x14\0\1" + bytes(16)),
    "jpeg DRI": lambda: _segments(b"\xff\xdd\0\4\0\1"),
    "jpeg restarts": lambda: _jpeg()[:-2] + b"\xff\xd0\xff\xd1" * 3_900_000,
    "jpeg trailing bytes": lambda: _jpeg() + b"\xff\xfe" * 7_900_000,
    "jpeg 64 MP": lambda: _jpeg(8000, quality=75),
    "jpeg 64 MP, progressive": lambda: _jpeg(8000, quality=60, progressive=True),
    "bmp of 16 MB": lambda: _bmp(2300, 2300),
    "bmp that lies": lambda: _bmp(8000, 8000)[:1000],
    "bmp RLE": lambda: _bmp(8000, 8000, depth=8, compression=1)[:1000],
    "gif": lambda: b"GIF89a" + b"\xff" * 15_000_000,
    "webp": lambda: b"RIFF\xff\xff\xff\0WEBPVP8L" + b"\xff" * 15_000_000,
}


def _bmp(width: int, height: int, depth: int = 24, compression: int = 0) -> bytes:
    fields = (40, width, height, 1, depth, compression, 0, 0, 0, 0, 0)
    header = struct.pack("<IHHI", 0, 0, 0, 54) + struct.pack("<IiiHHIIiiII", *fields)
    return b"BM" + header + bytes(min(width * height * depth // 8, _MAX_BYTES - 54))
