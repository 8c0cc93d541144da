"""Reading safetensors: values, memory, and hostile files."""

import contextlib
import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.components.importing.safetensors_file import MAX_HEADER_BYTES, read_safetensors
from regard.core.errors import UserError

MODELS = Path(__file__).parent / "huggingface"


def write(path, header, data=b"", length=None):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(content) if length is None else length
    path.write_bytes(struct.pack("<Q", size) + content + data)
    return path


def entry(kind="F32", shape=(2,), span=(0, 8)):
    return {"dtype": kind, "shape": list(shape), "data_offsets": list(span)}


def problem(path):
    with pytest.raises(UserError) as error:
        read_safetensors(path)
    assert error.value.where == str(path)
    assert error.value.remedy
    return error.value.message


def test_values_by_name(tmp_path):
    data = struct.pack("<4f", 1, 2, 3, 4) + struct.pack("<e", 0.5) + b"\x01\x02"
    header = {
        "__metadata__": {"format": "pt"},
        "b": entry("F16", (), (16, 18)),
        "a": entry("F32", (2, 2), (0, 16)),
        "c": entry("BOOL", (2, 1, 1), (18, 20)),
        "none": entry("F32", (0, 3), (20, 20)),
    }
    with read_safetensors(write(tmp_path / "x.safetensors", header, data)) as tensors:
        assert {name: values.tolist() for name, values in tensors.items()} == {
            "a": [[1, 2], [3, 4]],
            "b": 0.5,
            "c": [[[True]], [[True]]],
            "none": [],
        }


def test_spaces_after_the_header(tmp_path):
    """Writers align the tensors by spaces."""
    header = json.dumps({"a": entry()}).encode() + b"   "
    path = write(tmp_path / "x", header, struct.pack("<2f", 1, 2))
    assert read_safetensors(path)["a"].tolist() == [1, 2]


def test_a_file_of_two_gigabytes_is_opened_without_reading_it(tmp_path):
    size = 2 << 30
    path = write(tmp_path / "x", {"a": entry("BF16", (size // 2,), (0, size))})
    with open(path, "ab") as file:
        file.truncate(path.stat().st_size + size)
    tracemalloc.start()
    with read_safetensors(path) as tensors:
        assert tensors.tensors["a"].shape == (size // 2,)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("header", "data", "part"),
    [
        ({"a": entry(span=(0, 8))}, b"1234", "incomplete"),
        ({"a": entry(span=(0, 8))}, b"123456789", "belong to no tensor"),
        ({"a": entry(), "b": entry(span=(4, 12))}, bytes(12), "overlaps"),
        ({"a": entry(), "b": entry(span=(12, 20))}, bytes(20), "unused"),
        ({"a": entry(span=(8, 16))}, bytes(16), "unused"),
        ({"a": entry(shape=(3,))}, bytes(8), "needs 12 bytes"),
        ({"a": entry(shape=(1 << 62, 1 << 62))}, bytes(8), "needs"),
        ({"a": entry(shape=(1 << 63,))}, bytes(8), "shape"),
        ({"a": entry(shape=(-2,))}, bytes(8), "shape"),
        ({"a": entry(shape=(2.0,))}, bytes(8), "shape"),
        ({"a": entry(shape=(True, 2))}, bytes(8), "shape"),
        ({"a": entry(shape=[1] * 9 + [2])}, bytes(8), "shape"),
        ({"a": entry(span=(8, 0))}, bytes(8), "range"),
        ({"a": entry(span=(-8, 0))}, bytes(8), "range"),
        ({"a": entry(span=(0, 4, 8))}, bytes(8), "range"),
        ({"a": {**entry(), "shape": None}}, bytes(8), "shape"),
        ({"a": {**entry(), "data_offsets": "08"}}, bytes(8), "range"),
        ({"a": {**entry(), "dtype": 32}}, bytes(8), "element type"),
        ({"a": [1]}, bytes(8), "object"),
        ([1, 2, 3, 4], b"", "object"),
        (b'{"a": NaN, "a": 1}', b"", "twice"),
        (b'{"a": \xff\xfe}  ', b"", "JSON"),
        (b"[" * 100_000, b"", "nested"),
        (b'{"a":' * 100_000, b"", "nested"),
        (b'{"a": ' + b"9" * 5000 + b"}", b"", "JSON"),
    ],
)
def test_damaged_files(tmp_path, header, data, part):
    assert part in problem(write(tmp_path / "x", header, data))


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2", "I4", "F4", "C64", "", "f32"])
def test_unsupported_element_types_are_named(tmp_path, kind):
    assert f"'{kind}'" in problem(write(tmp_path / "x", {"a": entry(kind)}, bytes(8)))


@pytest.mark.parametrize("length", [0, 9, 1 << 32, (1 << 64) - 1])
def test_wrong_lengths_of_headers(tmp_path, length):
    problem(write(tmp_path / "x", b"{}       "[:8], b"", length))


def test_a_header_is_not_larger_than_the_limit(tmp_path):
    path = write(tmp_path / "x", b"{}", b"", MAX_HEADER_BYTES + 1)
    with open(path, "ab") as file:
        file.truncate(MAX_HEADER_BYTES + 100)
    assert "more than" in problem(path)


@pytest.mark.parametrize("content", [b"x", b"12345678", b"PK\x03\x04" + bytes(50), bytes(9)])
def test_other_files(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    problem(tmp_path / "x")


def test_a_name_cannot_change_the_terminal(tmp_path):
    path = write(tmp_path / "x", {"\x1b[2J\n" * 100: entry(shape=(3,))}, bytes(8))
    assert problem(path).isprintable()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_changed_bytes_are_read_or_refused(tmp_path_factory, data):
    """A real file with changed, missing and additional bytes."""
    content = bytearray((MODELS / "marian-float16" / "model.safetensors").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        # Most of the interesting bytes are in the header.
        position = data.draw(st.integers(0, 3000) | st.integers(0, len(content) - 1))
        content[position : position + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=3)
        )
    path = tmp_path_factory.mktemp("fuzz") / "x"
    path.write_bytes(content)
    with contextlib.suppress(UserError), read_safetensors(path) as tensors:
        assert all(isinstance(values, np.ndarray) for values in tensors.values())
