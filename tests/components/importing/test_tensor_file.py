"""Values of tensors in a file, and what is refused before its format matters."""

import io
import os

import numpy as np
import pytest

from regard.components.importing.tensor_file import (
    StoredTensor,
    TensorFile,
    open_weights_file,
    quote,
)
from regard.core.errors import UserError


def stored(path, content, **tensors):
    return TensorFile(path, io.BytesIO(content), tensors)


@pytest.mark.parametrize(
    ("kind", "values", "dtype"),
    [
        ("F64", np.array([1.5, -2.0], "<f8"), np.float32),
        ("F32", np.array([1.5, -2.0], "<f4"), np.float32),
        ("F16", np.array([1.5, -2.0], "<f2"), np.float32),
        ("I64", np.array([-1, 1 << 40], "<i8"), np.int64),
        ("U8", np.array([0, 255], "u1"), np.uint8),
        ("I8", np.array([-128, 127], "i1"), np.int8),
        ("BOOL", np.array([0, 1], "u1"), np.bool_),
    ],
)
def test_floats_become_float32_and_other_types_stay(tmp_path, kind, values, dtype):
    with stored(tmp_path, b"abc" + values.tobytes(), x=StoredTensor(kind, (2,), 3)) as tensors:
        assert tensors["x"].dtype == dtype
        assert tensors["x"].tolist() == values.tolist()
        assert tensors["x"].flags.writeable


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path):
    values = np.array([1.0, -3.140625, np.inf, 2.0**-133], "<f4")
    content = (values.view("<u4") >> 16).astype("<u2").tobytes()
    assert stored(tmp_path, content, x=StoredTensor("BF16", (4,), 0))["x"].tolist() == [
        *values.tolist()
    ]


def test_a_float64_beyond_float32_is_infinite(tmp_path):
    content = np.array([1e300], "<f8").tobytes()
    assert np.isinf(stored(tmp_path, content, x=StoredTensor("F64", (1,), 0))["x"]).all()


@pytest.mark.parametrize(("shape", "size"), [((), 1), ((0,), 0), ((3, 0, 2), 0), ((1, 1), 1)])
def test_scalars_and_empty_tensors(tmp_path, shape, size):
    for strides in (None, (1,) * len(shape)):
        tensor = StoredTensor("F32", shape, 0, strides)
        values = stored(tmp_path, b"\0\0\x80\x3f", x=tensor)["x"]
        assert values.shape == shape
        assert values.tolist() == np.ones(shape).tolist()
        assert values.size == size


def test_strides_and_offsets(tmp_path):
    """As_strided of NumPy on the whole array is the reference."""
    values = np.arange(24, dtype="<f4")
    for shape, strides in (
        ((3, 2), (1, 3)),
        ((2, 2, 2), (12, 2, 5)),
        ((4,), (0,)),
        ((2, 3), (7, 2)),
    ):
        expected = np.lib.stride_tricks.as_strided(
            values[2:], shape, [4 * stride for stride in strides]
        )
        tensor = StoredTensor("F32", shape, 8, strides)
        actual = stored(tmp_path, values.tobytes(), x=tensor)["x"]
        np.testing.assert_array_equal(actual, expected)
        assert actual.flags.c_contiguous


def test_a_file_that_became_shorter(tmp_path):
    tensors = stored(tmp_path / "a.bin", b"1234567", x=StoredTensor("F32", (2,), 0))
    with pytest.raises(UserError) as error:
        tensors["x"]
    assert error.value.where == str(tmp_path / "a.bin")


def test_a_mapping_reads_nothing_before_an_access(tmp_path):
    tensors = stored(tmp_path, b"", x=StoredTensor("F32", (2,), 0))
    assert list(tensors) == ["x"]
    assert "x" in tensors
    assert "y" not in tensors
    with pytest.raises(KeyError):
        tensors["y"]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n", "Git LFS"),
        (b"\n <!DOCTYPE html><html>Sign in</html>", "web page"),
        (b"<HTML>", "web page"),
        (b"<?xml version='1.0'?><Error>AccessDenied</Error>", "web page"),
    ],
)
def test_what_downloads_leave_in_place_of_a_file(tmp_path, content, word):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(UserError, match=word) as error:
        open_weights_file(path)
    assert error.value.where == str(path)
    assert error.value.remedy


def test_only_regular_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name in ("fifo", "link", "nothing", "."):
        with pytest.raises(UserError) as error:
            open_weights_file(tmp_path / name)
        assert error.value.where == str(tmp_path / name)


def test_quoted_names_are_one_short_line():
    nested = ()
    for _ in range(100):
        nested = (nested, nested)  # 2**100 items, if it were printed
    for value in ("a\nb\x1b[2J", "x" * 10**6, 10**600, nested, None):
        assert len(quote(value)) <= 80
        assert quote(value).isprintable()
