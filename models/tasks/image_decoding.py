"""Decoding of images in a graph, with a limit on their size.

A PNG of 64 KB may hold 23,000 x 23,000 pixels, and ``tf.io.decode_image`` allocates them all before
it finds the image damaged. So the size is read from the header first.
"""

import functools
import operator
from collections.abc import Callable, Iterable

import tensorflow as tf

from regard.models.tasks.description import MAX_PIXELS, TOO_LARGE

_HEADER_BYTES = 26
# Of a GIF: extensions before the first frame, and sub-blocks of up to 255 bytes in an extension and
# in the frame (16 MB). The limits bound the time, about 10 us for each block.
_MAX_EXTENSIONS, _MAX_EXTENSION_BLOCKS, _MAX_FRAME_BLOCKS = 16, 1 << 13, 1 << 16
_TRAILER = b";"
Step = Callable[[tf.Tensor], tf.Tensor]
_PADDING = 1 << 11  # more than the bytes of a GIF that are read without looking at the ones before


def decode_image(encoded: tf.Tensor) -> tf.Tensor:
    """Decode a JPEG, PNG, GIF (its first frame) or BMP ``[]`` to uint8 ``[height, width, 3]``.

    Raises:
        tf.errors.InvalidArgumentError: The image is invalid, truncated or has more than
            ``MAX_PIXELS`` pixels (when the graph runs).
    """
    is_gif = _is_kind(encoded, b"GIF8")
    pixels = _size_in_header(encoded, is_gif)
    # The decoder knows other formats, such as JPEG XL, whose size is not checked.
    is_known = tf.debugging.Assert(pixels >= 0, ["The image is no JPEG, PNG, GIF or BMP."])
    with tf.control_dependencies([is_known, _check_size(pixels)]):
        encoded = tf.cond(is_gif, lambda: _first_frame(encoded), lambda: tf.identity(encoded))
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    return image


def _is_kind(encoded: tf.Tensor, magic: bytes) -> tf.Tensor:
    return tf.equal(tf.strings.substr(encoded, 0, len(magic)), magic)


def _check_size(pixels: tf.Tensor) -> tf.Operation:
    return tf.debugging.Assert(pixels <= MAX_PIXELS, [f"The image {TOO_LARGE}."])


def _size_in_header(encoded: tf.Tensor, is_gif: tf.Tensor) -> tf.Tensor:
    """Return the number of pixels; -1 for a file of another kind."""
    header = tf.strings.substr(encoded, 0, _HEADER_BYTES)
    padded = tf.strings.join([header, b"\0" * _HEADER_BYTES])  # it may be truncated
    data = tf.cast(tf.io.decode_raw(padded, tf.uint8), tf.int64)
    cases = [
        (_is_kind(encoded, b"\x89PNG"), lambda: _product(data, range(16, 20), range(20, 24))),
        (is_gif, lambda: _product(data, (7, 6), (9, 8))),
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


def _first_frame(gif: tf.Tensor) -> tf.Tensor:
    """Return a GIF up to the end of its first frame; the decoder would decode all of them."""
    padded = tf.strings.join([gif, b"\0" * _PADDING])
    data = tf.cast(tf.io.decode_raw(padded, tf.uint8), tf.int64)

    def after_table(place: tf.Tensor, flags: tf.Tensor) -> tf.Tensor:
        """Return the end of a color table, if there is one."""
        return place + tf.where(flags >= 128, 3 * 2 ** (flags % 8 + 1), 0)

    def after_blocks(place: tf.Tensor, limit: int) -> tf.Tensor:
        """Return the end of sub-blocks, whose first bytes are their sizes; the last is empty."""
        return 1 + _loop(lambda i: data[i] > 0, lambda i: i + data[i] + 1, place, limit)

    def is_extension(place: tf.Tensor) -> tf.Tensor:
        return tf.equal(data[place], 0x21)

    def after_extension(place: tf.Tensor) -> tf.Tensor:
        return after_blocks(place + 2, _MAX_EXTENSION_BLOCKS)

    start = after_table(tf.constant(13, tf.int64), data[10])
    frame = _loop(is_extension, after_extension, start, _MAX_EXTENSIONS)
    # A frame may be larger than the canvas.
    with tf.control_dependencies([_check_size(_product(data[frame:], (6, 5), (8, 7)))]):
        end = after_blocks(after_table(frame + 10, data[frame + 9]) + 1, _MAX_FRAME_BLOCKS)
    return tf.strings.join([tf.strings.substr(gif, tf.constant(0, tf.int64), end), _TRAILER])


def _loop(condition: Step, body: Step, start: tf.Tensor, limit: int) -> tf.Tensor:
    """Apply ``body`` while ``condition`` holds, at most ``limit`` times."""
    options = {"parallel_iterations": 1, "maximum_iterations": limit}
    return tf.while_loop(condition, lambda place: [body(place)], [start], **options)[0]
