"""Decoding of images in a graph: equal pixels, and a limit before decoding."""

import io
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from regard.models.tasks.captioning.served import decode_images
from regard.models.tasks.image_decoding import decode_image
from regard.serving.server.errors import ServingError
from regard.serving.server.servable import Servable

KINDS = ("png", "jpeg", "bmp")


def png_of(width: int, height: int) -> bytes:
    """A PNG whose header is all that matters."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def with_size(kind: str, width: int, height: int) -> bytes:
    """A small image that claims another size."""
    if kind == "png":
        return png_of(width, height)
    stream = io.BytesIO()
    Image.new("RGB", (5, 7)).save(stream, kind)
    content = bytearray(stream.getvalue())
    if kind == "jpeg":
        place = content.index(b"\xff\xc0") + 5
        content[place : place + 4] = struct.pack(">HH", height, width)
    else:
        content[18:26] = struct.pack("<ii", width, -height)
    return bytes(content)


def saved(kind: str, mode: str, **options: object) -> bytes:
    noise = np.random.default_rng(1).integers(0, 256, (37, 53, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(stream, kind, **options)
    return stream.getvalue()


ORDINARY = {
    "png": saved("png", "RGB"),
    "gray png": saved("png", "L"),
    "jpeg": saved("jpeg", "RGB"),
    "progressive jpeg": saved("jpeg", "RGB", progressive=True),
    "jpeg with a long comment": saved("jpeg", "RGB", comment=b"a" * 65000),
    "bmp": saved("bmp", "RGB"),
}


@pytest.fixture(scope="module")
def decode():
    return tf.function(decode_image, input_signature=[tf.TensorSpec([], tf.string)])


@pytest.mark.parametrize("name", ORDINARY)
def test_pixels_are_those_of_tensorflow(decode, name):
    expected = tf.io.decode_image(ORDINARY[name], channels=3, expand_animations=False)
    np.testing.assert_array_equal(decode(ORDINARY[name]), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(8001, 8001), (65500, 65500)])
def test_large_images_are_refused_by_their_header(decode, kind, size):
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 64,000,000 pixels"):
        decode(with_size(kind, *size))


def test_sizes_do_not_overflow(decode):
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 64,000,000 pixels"):
        decode(png_of(2**32 - 1, 2**32 - 1))


@pytest.mark.parametrize("kind", KINDS)
def test_cut_images_are_invalid(decode, kind):
    whole = ORDINARY[kind]
    for size in range(0, len(whole) // 2, 97):
        with pytest.raises(tf.errors.InvalidArgumentError):
            decode(whole[:size])


def test_batches():
    batch = tf.constant([ORDINARY["png"], ORDINARY["bmp"]])
    assert decode_images(batch, 8, 16).shape == (2, 8, 16, 3)


def test_servers_answer_invalid_argument(tmp_path):
    spec = tf.TensorSpec([None], tf.string, name="image")
    module = tf.Module()
    module.run = tf.function(lambda image: {"pixels": decode_images(image, 8, 8)}, [spec])
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default": module.run})
    servable = Servable("a", tmp_path / "1")
    with pytest.raises(ServingError) as caught:
        servable.run("", {"image": np.array([png_of(23_000, 23_000)], object)})
    assert caught.value.code.name == "INVALID_ARGUMENT"
    assert "The image has more than 64,000,000 pixels." in caught.value.message
    outputs = servable.run("", {"image": np.array([ORDINARY["png"]], object)})
    np.testing.assert_array_equal(
        outputs["pixels"], decode_images(tf.constant([ORDINARY["png"]]), 8, 8)
    )
    servable.close()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\x0a" + b"\xde" * 111,
        b"RIFF\x24\0\0\0WEBPVP8 ",
        saved("gif", "RGB"),
        b"\0\0\0\x0cJXL \r\n\x87\n",
        b"a",
        b"",
    ],
    ids=["JPEG XL", "WebP", "GIF", "JPEG XL container", "text", "empty"],
)
def test_other_formats_are_refused(decode, content):
    """A JPEG XL of 113 bytes claims 467,393,500 x 934,787,000 pixels; TensorFlow allocates them."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="no JPEG, PNG or BMP"):
        decode(content)
