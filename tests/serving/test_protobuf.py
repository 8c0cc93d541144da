"""The client's own protocol buffers against those of TensorFlow."""

import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from regard.serving.protobuf import message_class, read_tensor, write_tensor

NUMBERS = ("float32", "float64", "float16", "bfloat16")
NUMBERS += ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ARRAYS = [
    *(np.arange(6).reshape(2, 3).astype(name) for name in NUMBERS),
    np.full((2, 1), 2**64 - 1, np.uint64),
    np.full((0, 3), b"", dtype=object),
    np.array(b"\xff", dtype=object),
    np.array([True, False]),
    np.array([[b"a", b"\xff"]], dtype=object),
    np.array(3.5, np.float32),
    np.zeros((0, 2), np.int32),
]


def parse(proto):
    return read_tensor(message_class("Tensor").FromString(proto.SerializeToString()))


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{list(array.shape)}")
def test_tensors(array):
    message = message_class("Tensor")()
    write_tensor(message, array)
    stored_text = tf.make_ndarray(tensor_pb2.TensorProto.FromString(message.SerializeToString()))
    parsed = parse(tf.make_tensor_proto(array))
    for result in (stored_text, parsed):
        np.testing.assert_array_equal(result, array)
        assert (result.dtype, result.shape) == (array.dtype, array.shape)


def test_the_last_value_stands_for_missing_ones():
    proto = tf.make_tensor_proto(np.full((2, 3), 7, np.int32))
    proto.tensor_content = b""
    proto.int_val[:] = [1, 7]
    assert parse(proto).tolist() == [[1, 7, 7], [7, 7, 7]]


def test_a_large_array_is_written_in_parts():
    """All at once, the numbers of Python would take eight times the memory of the array."""
    array, message = np.zeros(1 << 20, np.float32), message_class("Tensor")()
    tracemalloc.start()
    try:
        write_tensor(message, array)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(message.float_val) == array.size
    assert peak < array.nbytes
