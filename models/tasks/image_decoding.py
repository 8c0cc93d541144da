"""Decoding of images in a graph, with limits that are checked before anything is decoded.

A file of some kilobytes may cost seconds and gigabytes: a PNG of 64 KB may hold 23,000 x 23,000
pixels, each scan of a progressive JPEG and each compressed text of a PNG is processed whatever it
contains. The checks are part of the graph, so that corpora, servers and the exported model use the
same. ``python -m benchmarks.trust images`` measures what files within the limits cost.
"""

from collections.abc import Sequence
from functools import partial

import tensorflow as tf

from regard.models.tasks.image_formats import (
    BMP_MAGIC,
    CONVERT,
    JPEG_MAGIC,
    NOT_AN_IMAGE,
    OTHER_FORMATS,
    PNG_MAGIC,
)

MAX_PIXELS = 64_000_000
# The decoder and the resizing keep data of every row and column.
MAX_SIDE = 65_535
# Of the uncompressed data of a PNG; an interlaced one is read about twice.
MAX_PNG_BYTES = 3 * MAX_PIXELS
# The decoder uncompresses up to 8 MB of each.
MAX_PNG_TEXTS = 10
_PNG_TEXTS = (b"TXt", b"iCCP")  # chunks zTXt, iTXt and iCCP
# Encoders write about 10. Those of embedded thumbnails count too.
MAX_SCANS = 100
# Each scan of a progressive JPEG visits every pixel.
MAX_SCANNED_PIXELS = 32 * MAX_PIXELS
# Of all images of a batch, by `_decoded_bytes`: 64 photographs of 12 megapixels.
MAX_BATCH_BYTES = 12 * MAX_PNG_BYTES
_TEXT_BYTES = 8_000_000
_USUAL_SCANS = 10  # take as long as the decoding of the pixels

_HEADER_BYTES = 66
_FINE = ""
_TOO_WIDE = f"is wider or higher than {MAX_SIDE:,} pixels"
_TOO_MANY_PIXELS = f"has more than {MAX_PIXELS:,} pixels"
_DAMAGED = "is truncated or damaged"
_UNCOMPRESSED, _BIT_FIELDS = 0, 3  # of a BMP
_BMP_MASKS = b"\0\0\xff\0\0\xff\0\0\xff\0\0\0"  # blue, green and red, in this order


def decode_image(encoded: tf.Tensor) -> tf.Tensor:
    """Decode a JPEG, PNG or BMP ``[]`` to uint8 ``[height, width, 3]``.

    Raises:
        tf.errors.InvalidArgumentError: The image has one of the problems of ``image_problem``, or
            is damaged (when the graph runs).
    """
    problem = image_problem(encoded)
    message = tf.strings.join(["The image ", problem, "."])
    with tf.control_dependencies([tf.debugging.Assert(problem == _FINE, [message])]):
        encoded = tf.identity(encoded)
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    header = _header(encoded)
    has_palette = _starts_with(encoded, BMP_MAGIC) & (_little_endian(header, 28, 2) == 8)
    return tf.cond(has_palette, lambda: _apply_palette(image, encoded, header), lambda: image)


def decode_images(encoded: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Decode images ``[batch]`` to uint8 ``[batch, height, width, 3]``.

    JPEG, PNG and BMP. An image of another aspect ratio is stretched, so
    that each cell of a grid always covers the same part of the image.

    Raises:
        tf.errors.InvalidArgumentError: An image is invalid, truncated or too large (when the graph
            runs).
    """

    def decode(content: tf.Tensor) -> tf.Tensor:
        resized = tf.image.resize(decode_image(content), [height, width], antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(resized), 0.0, 255.0), tf.uint8)

    spec = tf.TensorSpec([height, width, 3], tf.uint8)
    return tf.map_fn(decode, encoded, fn_output_signature=spec)


def check_batch(encoded: tf.Tensor) -> tf.Tensor:
    """Return the images ``[batch]`` of a request, if they may be decoded together.

    Raises:
        tf.errors.InvalidArgumentError: They would take too long (when the graph runs).
    """
    spec = tf.TensorSpec([], tf.int64)
    total = tf.reduce_sum(tf.map_fn(_decoded_bytes, encoded, fn_output_signature=spec))
    message = (
        f"The images have more than {MAX_BATCH_BYTES:,} bytes together when they are decoded. "
        "Send fewer of them at once."
    )
    with tf.control_dependencies([tf.debugging.Assert(total <= MAX_BATCH_BYTES, [message])]):
        return tf.identity(encoded)


def _decoded_bytes(encoded: tf.Tensor) -> tf.Tensor:
    """Return how much the decoder has to process for an image ``[]``; 0 for one that it refuses.

    These are the pixels or, if they are more, the uncompressed data of a PNG and the scans of a
    JPEG; and the texts of a PNG. Each byte takes 2 to 6 ns.
    """

    def png_bytes() -> tf.Tensor:
        pixels = _big_endian(header, 16) * _big_endian(header, 20)
        return tf.maximum(3 * pixels, _png_data_bytes(header)) + _TEXT_BYTES * _count_texts(encoded)

    def jpeg_bytes() -> tf.Tensor:
        shape = tf.image.extract_jpeg_shape(encoded, tf.int64)
        return (
            3
            * shape[0]
            * shape[1]
            * tf.maximum(_count_scans(encoded), _USUAL_SCANS)
            // _USUAL_SCANS
        )

    def bmp_bytes() -> tf.Tensor:
        height = _little_endian(header, 22, 4)
        return 3 * _little_endian(header, 18, 4) * tf.minimum(height, (1 << 32) - height)

    def fine_bytes() -> tf.Tensor:
        cases = [
            (_starts_with(encoded, PNG_MAGIC), png_bytes),
            (_starts_with(encoded, BMP_MAGIC), bmp_bytes),
        ]
        return tf.case(cases, default=jpeg_bytes)

    header = _header(encoded)
    is_fine = image_problem(encoded) == _FINE
    return tf.cond(is_fine, fine_bytes, lambda: tf.constant(0, tf.int64))


def image_problem(encoded: tf.Tensor) -> tf.Tensor:
    """Return why an image ``[]`` is not decoded, as the end of a sentence; empty if it is.

    Only the headers are read: a fine image may still be damaged.
    """
    header = _header(encoded)
    others = [
        (_starts_with(encoded, other.magic, other.start), partial(tf.constant, other.problem))
        for other in OTHER_FORMATS
    ]
    cases = [
        (_starts_with(encoded, PNG_MAGIC), lambda: _png_problem(encoded, header)),
        (_starts_with(encoded, BMP_MAGIC), lambda: _bmp_problem(header)),
        (_starts_with(encoded, JPEG_MAGIC), lambda: _jpeg_problem(encoded)),
    ]
    return tf.case([*cases, *others], default=lambda: tf.constant(NOT_AN_IMAGE))


def _png_problem(encoded: tf.Tensor, header: tf.Tensor) -> tf.Tensor:
    width, height = _big_endian(header, 16), _big_endian(header, 20)
    size, text_count = _png_data_bytes(header), _count_texts(encoded)
    return _first_problem(
        # The decoder would skip other chunks, and find another size after them.
        (~_starts_with(encoded, b"IHDR", 12), _DAMAGED),
        *_size_problems(width, height),
        (size > MAX_PNG_BYTES, f"has more than {MAX_PNG_BYTES:,} bytes when it is uncompressed"),
        (text_count > MAX_PNG_TEXTS, f"has more than {MAX_PNG_TEXTS} compressed texts or profiles"),
    )


def _png_data_bytes(header: tf.Tensor) -> tf.Tensor:
    """Return the size of a PNG's uncompressed data; of an interlaced one, twice as much."""
    width, height = _big_endian(header, 16), _big_endian(header, 20)
    depth, color, is_interlaced = header[24], header[25], header[28] > 0
    channels = tf.gather(tf.constant([1, 0, 3, 1, 2, 0, 4, 0], tf.int64), color % 8)
    row_bytes = (tf.minimum(width, MAX_SIDE) * depth * channels + 7) // 8
    passes = tf.where(is_interlaced, tf.constant(2, tf.int64), 1)
    return row_bytes * tf.minimum(height, MAX_SIDE) * passes


def _count_texts(encoded: tf.Tensor) -> tf.Tensor:
    return tf.add_n([_count(encoded, name, MAX_PNG_TEXTS) for name in _PNG_TEXTS])


def _jpeg_problem(encoded: tf.Tensor) -> tf.Tensor:
    shape = tf.image.extract_jpeg_shape(encoded, tf.int64)
    scans = _count_scans(encoded)
    too_many_scans = "has more scans than a progressive JPEG of its size needs"
    return _first_problem(
        *_size_problems(shape[1], shape[0]),
        (scans > MAX_SCANS, f"has more than {MAX_SCANS} scans"),
        (scans * shape[0] * shape[1] > MAX_SCANNED_PIXELS, too_many_scans),
    )


def _count_scans(encoded: tf.Tensor) -> tf.Tensor:
    # The marker of a scan, and the first byte of its header's length, which is below 256.
    return _count(encoded, b"\xff\xda\0", MAX_SCANS)


def _bmp_problem(header: tf.Tensor) -> tf.Tensor:
    width, height = _little_endian(header, 18, 4), _little_endian(header, 22, 4)
    height = tf.minimum(height, (1 << 32) - height)  # negative if the first row is at the top
    depth, compression = _little_endian(header, 28, 2), _little_endian(header, 30, 4)
    masks = tf.constant(list(_BMP_MASKS), tf.int64)
    has_usual_masks = (
        (compression == _BIT_FIELDS) & (depth == 32) & tf.reduce_all(header[54:66] == masks)
    )
    bits = tf.strings.join([tf.strings.as_string(depth), tf.where(depth == 1, " bit", " bits")])
    return _first_problem(
        (_little_endian(header, 14, 4) < 40, f"is a BMP of OS/2; {CONVERT}"),
        (
            (depth != 8) & (depth != 24) & (depth != 32),
            tf.strings.join(["is a BMP with ", bits, f" a pixel; {CONVERT}"]),
        ),
        (
            (compression != _UNCOMPRESSED) & ~has_usual_masks,
            f"is a BMP with compression or color masks; {CONVERT}",
        ),
        *_size_problems(width, height),
    )


def _size_problems(width: tf.Tensor, height: tf.Tensor) -> Sequence[tuple[tf.Tensor, str]]:
    is_large = tf.minimum(width, 1 << 31) * tf.minimum(height, 1 << 31) > MAX_PIXELS
    return (is_large, _TOO_MANY_PIXELS), ((width > MAX_SIDE) | (height > MAX_SIDE), _TOO_WIDE)


def _first_problem(*problems: tuple[tf.Tensor, str | tf.Tensor]) -> tf.Tensor:
    """Return the text of the first condition that holds."""
    result = tf.constant(_FINE)
    for condition, text in reversed(problems):
        result = tf.where(condition, text, result)
    return result


def _apply_palette(image: tf.Tensor, encoded: tf.Tensor, header: tf.Tensor) -> tf.Tensor:
    """Return the colors of a BMP that the decoder took for shades of gray."""
    count = _little_endian(header, 46, 4)
    count = tf.where((count == 0) | (count > 256), tf.constant(256, tf.int64), count)
    start = tf.minimum(
        14 + _little_endian(header, 14, 4), tf.cast(tf.strings.length(encoded), tf.int64)
    )
    entries = tf.strings.substr(encoded, start, 4 * count)
    padded = tf.strings.substr(tf.strings.join([entries, bytes(1024)]), 0, 1024)
    palette = tf.reshape(tf.io.decode_raw(padded, tf.uint8), [256, 4])
    return tf.gather(palette[:, 2::-1], tf.cast(image[:, :, 0], tf.int32))


def _header(encoded: tf.Tensor) -> tf.Tensor:
    """Return the first bytes as numbers, with zeros after the end of the file."""
    header = tf.strings.substr(encoded, 0, _HEADER_BYTES)
    padded = tf.strings.substr(tf.strings.join([header, bytes(_HEADER_BYTES)]), 0, _HEADER_BYTES)
    return tf.cast(tf.io.decode_raw(padded, tf.uint8), tf.int64)


def _starts_with(encoded: tf.Tensor, magic: bytes, start: int = 0) -> tf.Tensor:
    head = tf.strings.substr(encoded, 0, start + len(magic))  # an empty text has no other position
    return tf.strings.substr(tf.strings.join([head, bytes(start)]), start, len(magic)) == magic


def _big_endian(header: tf.Tensor, start: int) -> tf.Tensor:
    return tf.reduce_sum(
        header[start : start + 4] * tf.constant([1 << 24, 1 << 16, 256, 1], tf.int64)
    )


def _little_endian(header: tf.Tensor, start: int, size: int) -> tf.Tensor:
    places = tf.constant([256**place for place in range(size)], tf.int64)
    return tf.reduce_sum(header[start : start + size] * places)


def _count(encoded: tf.Tensor, pattern: bytes, limit: int) -> tf.Tensor:
    """Return how often a pattern occurs, up to a number above the limit."""
    parts = tf.strings.split(encoded[None], pattern, maxsplit=limit + 1)
    return tf.size(parts.flat_values, tf.int64) - 1
