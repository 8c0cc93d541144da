"""Decoding of images in a graph: equal pixels, and a limit before decoding."""

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from regard.models.tasks.image_decoding import (
    check_batch,
    decode_image,
    decode_images,
    image_problem,
)
from regard.serving.server.errors import ServingError
from regard.serving.server.servable import Servable

KINDS = ("png", "jpeg", "bmp")


def png_of(width: int, height: int, depth: int = 8, color: int = 2, interlaced: int = 0) -> bytes:
    """A PNG whose header is all that matters."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + png_chunk(b"IDAT", b"")
        + png_chunk(b"IEND", b"")
    )


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


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_with(*chunks: bytes) -> bytes:
    """A small PNG with more chunks after its header."""
    start = 8 + 12 + 13
    return ORDINARY["png"][:start] + b"".join(chunks) + ORDINARY["png"][start:]


def with_scans(count: int, width: int, height: int) -> bytes:
    """A progressive JPEG with a number of scans without data after the first."""
    content = saved("jpeg", "RGB", progressive=True)
    size = content.index(b"\xff\xc2") + 5
    start = content.index(b"\xff\xda")
    head = content[:size] + struct.pack(">HH", height, width) + content[size + 4 : start + 14]
    return head + b"\xff\xda\0\x08\1\1\0\1\x3f\0" * (count - 1) + b"\xff\xd9"


def saved(kind: str, mode: str, **options: object) -> bytes:
    noise = np.random.default_rng(1).integers(0, 256, (37, 53, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(stream, kind, **options)
    return stream.getvalue()


def saved_bmp_with_palette(colors: int) -> bytes:
    """A bitmap with a palette of some colors, in no order of brightness."""
    noise = np.random.default_rng(3).integers(0, 256, (37, 53, 3), np.uint8)
    image = Image.fromarray(noise).quantize(colors)
    stream = io.BytesIO()
    image.save(stream, "bmp")
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


@pytest.fixture(scope="module")
def check():
    return tf.function(check_batch, [tf.TensorSpec([None], tf.string)])


@pytest.mark.parametrize(
    ("image", "most"),
    [
        (with_size("jpeg", 4000, 3000), 64),
        (with_size("bmp", 8000, 8000), 12),
        (png_of(8000, 8000), 12),
        (png_of(8000, 8000, depth=1, color=0), 12),
        (png_of(4800, 5000, depth=16, color=6), 12),
        (png_with(*[png_chunk(b"zTXt", b"a\0\0")] * 10), 28),
        (with_scans(32, 8000, 8000), 3),
    ],
    ids=["photographs", "bitmaps", "colors", "one bit", "16 bits", "texts", "scans"],
)
def test_a_batch_is_limited_by_the_headers_of_its_images(check, image, most):
    check(tf.constant([image] * most))
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 2,304,000,000 bytes"):
        check(tf.constant([image] * (most + 1)))


def test_invalid_images_of_a_batch_are_left_to_their_own_error(check):
    check(tf.constant([b"", b"a", png_of(2**32 - 1, 2**32 - 1), with_size("bmp", 65500, 65500)]))


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


OTHER_FILES = {
    "a JPEG XL image": b"\xff\x0a" + b"\xde" * 111,
    "a WebP image": saved("webp", "RGB"),
    "a GIF image": saved("gif", "RGB"),
    "a TIFF image": saved("tiff", "RGB"),
    "an AVIF image": saved("avif", "RGB"),
    "a JPEG 2000 image": saved("jpeg2000", "RGB"),
    "a HEIC image": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
    "not an image (JPEG, PNG or BMP)": b"a",
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_formats_are_refused_by_name(decode, name):
    """A JPEG XL of 113 bytes claims 467,393,500 x 934,787,000 pixels; TensorFlow allocates them."""
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        decode(OTHER_FILES[name])
    assert f"The image is {name}" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"RIFF", b"\0\0\0\x0c", b"\xff", b"BM"])
def test_short_files_are_refused(decode, content):
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode(content)


BOMBS = {
    "scans over large pixels": (with_scans(40, 8000, 8000), "more scans than"),
    "scans over few pixels": (with_scans(101, 8, 8), "more than 100 scans"),
    "texts": (png_with(*[png_chunk(b"zTXt", b"a\0\0")] * 11), "more than 10 compressed"),
    "texts and profiles": (
        png_with(
            *[png_chunk(b"zTXt", b"a\0\0")] * 5,
            *[png_chunk(b"iTXt", b"a\0\1\0\0\0")] * 5,
            png_chunk(b"iCCP", b"a\0\0"),
        ),
        "more than 10 compressed",
    ),
    "wide pixels": (png_of(8000, 8000, 16, 6), "192,000,000 bytes"),
    "interlaced": (png_of(8000, 8000, 8, 2, 1), "192,000,000 bytes"),
    "one column": (png_of(1, 64_000_000), "65,535 pixels"),
    "one row": (png_of(1_000_000, 64), "65,535 pixels"),
    "a chunk before the header": (
        ORDINARY["png"][:8] + png_chunk(b"abCd", bytes(20)) + png_of(8001, 8001)[8:],
        "damaged",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_with_much_work_are_refused_before_decoding(decode, name):
    content, message = BOMBS[name]
    assert message in image_problem(tf.constant(content)).numpy().decode()
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        decode(content)


PROFILE = np.random.default_rng(2).bytes(200_000)
PHOTOGRAPHS = {
    "thumbnail and profile": saved(
        "jpeg",
        "RGB",
        progressive=True,
        icc_profile=PROFILE,
        exif=b"Exif\0\0" + saved("jpeg", "RGB", progressive=True),
    ),
    "trailing video": saved("jpeg", "RGB", progressive=True) + PROFILE * 20,
    "restart intervals": saved("jpeg", "RGB", restart_marker_blocks=1),
    "CMYK": saved("jpeg", "CMYK"),
    "png with a profile": saved("png", "RGB", icc_profile=PROFILE),
    "16 bits": saved("png", "I;16"),
    "transparency": saved("png", "RGBA"),
    "palette": saved("png", "P"),
    "bilevel": saved("png", "1"),
    "5 texts": png_with(*[png_chunk(b"zTXt", b"a\0\0" + zlib.compress(PROFILE))] * 5),
    "10 scans of 12 megapixels": with_scans(10, 4000, 3000),
}


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_ordinary_photographs_are_within_the_limits(decode, name):
    content = PHOTOGRAPHS[name]
    assert image_problem(tf.constant(content)).numpy() == b""
    if name != "10 scans of 12 megapixels":
        expected = tf.io.decode_image(content, channels=3, expand_animations=False)
        np.testing.assert_array_equal(decode(content), expected)


BITMAPS = {
    "gray": saved("bmp", "L"),
    "palette": saved("bmp", "P"),
    "adaptive palette": saved_bmp_with_palette(16),
    "24 bits": saved("bmp", "RGB"),
    "32 bits": saved("bmp", "RGBA"),
}


@pytest.mark.parametrize("name", BITMAPS)
def test_pixels_of_bitmaps_are_those_of_pillow(decode, name):
    expected = np.asarray(Image.open(io.BytesIO(BITMAPS[name])).convert("RGB"))
    np.testing.assert_array_equal(decode(BITMAPS[name]), expected)


def test_rows_of_a_bitmap_from_top_to_bottom(decode):
    content = bytearray(BITMAPS["palette"])
    content[22:26] = struct.pack("<i", -37)
    expected = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    np.testing.assert_array_equal(decode(bytes(content)), expected)


def with_field(content: bytes, place: int, value: bytes) -> bytes:
    return content[:place] + value + content[place + len(value) :]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (saved("bmp", "1"), "a BMP with 1 bit a pixel"),
        (with_field(BITMAPS["gray"], 28, b"\4\0"), "a BMP with 4 bits a pixel"),
        (with_field(BITMAPS["24 bits"], 28, b"\x10\0"), "a BMP with 16 bits a pixel"),
        (with_field(BITMAPS["palette"], 30, b"\1"), "compression"),
        (with_field(with_field(BITMAPS["32 bits"], 30, b"\3"), 54, b"\xff\0\0\0"), "masks"),
        (with_field(BITMAPS["24 bits"], 14, b"\x0c"), "OS/2"),
    ],
)
def test_bitmaps_that_would_be_misread_are_refused_by_name(decode, content, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        decode(content)


def test_fields_of_a_bitmap_that_lie(decode):
    """No field of the header lets the palette or the pixels be read outside of the file."""
    for name in ("palette", "32 bits"):
        for place in range(10, 54):
            for value in (0, 1, 127, 255):
                content = with_field(BITMAPS[name], place, bytes([value]))
                with contextlib.suppress(tf.errors.InvalidArgumentError):
                    assert decode(content).shape[-1] == 3
