"""Decoding of images in a graph, with a limit on their size.

A PNG of 64 KB may hold 23,000 x 23,000 pixels, and ``tf.io.decode_image`` allocates them all before
it finds the image damaged. So the size is read from the header first.
"""

import functools
import operator
from collections.abc import Iterable

import tensorflow as tf

from regard.models.tasks.description import MAX_PIXELS, TOO_LARGE

_HEADER_BYTES = 26


def decode_image(encoded: tf.Tensor) -> tf.Tensor:
    """Decode a JPEG, PNG or BMP ``[]`` to uint8 ``[height, width, 3]``.

    Raises:
        tf.errors.InvalidArgumentError: The image is invalid, truncated or has more than
            ``MAX_PIXELS`` pixels (when the graph runs).
    """
    pixels = _size_in_header(encoded)
    # The decoder knows other formats, such as JPEG XL, whose size is not checked. Of a GIF it would
    # decode all frames.
    is_known = tf.debugging.Assert(pixels >= 0, ["The image is no JPEG, PNG or BMP."])
    is_small = tf.debugging.Assert(pixels <= MAX_PIXELS, [f"The image {TOO_LARGE}."])
    with tf.control_dependencies([is_known, is_small]):
        encoded = tf.identity(encoded)
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    return image


def _is_kind(encoded: tf.Tensor, magic: bytes) -> tf.Tensor:
    return tf.equal(tf.strings.substr(encoded, 0, len(magic)), magic)


def _size_in_header(encoded: tf.Tensor) -> tf.Tensor:
    """Return the number of pixels; -1 for a file of another kind."""
    header = tf.strings.substr(encoded, 0, _HEADER_BYTES)
    padded = tf.strings.join([header, b"\0" * _HEADER_BYTES])  # it may be truncated
    data = tf.cast(tf.io.decode_raw(padded, tf.uint8), tf.int64)
    cases = [
        (_is_kind(encoded, b"\x89PNG"), lambda: _product(data, range(16, 20), range(20, 24))),
        # The decoder compares the size of a BMP with that of the file, which limits the height.
        (_is_kind(encoded, b"BM"), lambda: _product(data, (21, 20, 19, 18), (24, 23, 22))),
        (
            _is_kind(encoded, b"\xff\xd8\xff"),
            lambda: tf.reduce_prod(tf.image.extract_jpeg_shape(encoded, tf.int64)[:2]),
        ),
    ]
    return tf.case(cases, default=lambda: tf.constant(-1, tf.int64))


def _product(data: tf.Tensor, *places: Iterable[int]) -> tf.Tensor:
    """Multiply numbers in the header; ``places`` are their bytes, the highest first."""
    numbers = [functools.reduce(lambda n, place: n * 256 + data[place], p, 0) for p in places]
    return functools.reduce(operator.mul, [tf.minimum(n, 1 << 31) for n in numbers])
