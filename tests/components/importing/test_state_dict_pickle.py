"""The pickle of a state dict is read, and nothing in it is executed."""

import io
import os
import pickle
import sys
from pathlib import Path

import pytest

from regard.components.importing.state_dict_pickle import (
    PickledStorage,
    PickledTensor,
    read_pickle,
)
from regard.core.errors import UserError
from tests.components.importing.pytorch_files import (
    EMPTY_DICT,
    ORDERED_DICT,
    REBUILD,
    integer,
    items,
    state_dict,
    storage,
    tensor,
    text,
)

PATH = Path("pytorch_model.bin")


def read(content):
    return read_pickle(PATH, io.BytesIO(content))


def problem(content):
    with pytest.raises(UserError) as error:
        read(content)
    assert error.value.where == str(PATH)
    assert error.value.remedy
    return error.value.message


def test_a_dictionary_of_tensors():
    half = tensor(storage("1", 4, "HalfStorage"), (2,), (2,), 1)
    assert read(state_dict(a=tensor(storage()), b=half)) == {
        "a": PickledTensor(PickledStorage("F32", "0", 6), 0, (2, 3), (3, 1)),
        "b": PickledTensor(PickledStorage("F16", "1", 4), 1, (2,), (2,)),
    }


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_as_python_writes_them(protocol):
    value = {"a": [1, -70000, 1 << 70, 2.5, "é", None, True], "b": {"c": ((), (1,), (1, 2, 3, 4))}}
    value["again"] = value["a"]
    assert read(pickle.dumps(value, protocol)) == value


def test_the_rest_of_the_stream_stays():
    stream = io.BytesIO(pickle.dumps({"a": 1}, 2) + b"rest")
    assert read_pickle(PATH, stream) == {"a": 1}
    assert stream.read() == b"rest"


class Call:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_a_command_is_not_executed(tmp_path, protocol):
    harm = tmp_path / "harm"
    for function in (os.system, eval, exec):
        command = f"touch {harm}" if function is os.system else f"open({str(harm)!r}, 'w')"
        content = pickle.dumps({"weight": Call(function, command)}, protocol)
        message = problem(content)
        # Protocol 0 has instructions that PyTorch never writes; the others reach the name.
        assert protocol == 0 or function.__name__ in message
    assert not harm.exists()


@pytest.mark.parametrize(
    "name",
    [
        b"builtins\ngetattr",
        b"torch\nload",
        b"torch.hub\nload",
        b"torch._utils\n_rebuild_tensor_v2.__globals__",
        b"torch.FloatStorage\n__init__",
        b"collections\nOrderedDict.__init__.__globals__",
        b"collections OrderedDict\nx",
        b"collections\nCounter",
        b"\n",
    ],
)
def test_other_names_are_refused_and_not_imported(name):
    message = problem(b"\x80\x02c" + name + b"\n.")
    assert "execute" in message
    # The same name on the stack, as protocol 4 writes it.
    module, attribute = name.decode().split("\n", 1)
    assert "execute" in problem(b"\x80\x04" + text(module) + text(attribute) + b"\x93.")
    assert "torch" not in sys.modules


@pytest.mark.parametrize("name", ["_rebuild_tensor_v3", "_rebuild_qtensor"])
def test_quantized_tensors(name):
    assert "element type" in problem(b"\x80\x02ctorch._utils\n" + name.encode() + b"\n.")


@pytest.mark.parametrize(
    "content",
    [
        # The permitted functions with other arguments.
        ORDERED_DICT + items(text("a")) + b"R.",
        ORDERED_DICT + integer(1) + b"R.",
        REBUILD + b")R.",
        REBUILD + items(storage(), integer(0)) + b"R.",
        REBUILD + items(text("0"), integer(0), b")", b")", b"\x89", EMPTY_DICT) + b"R.",
        tensor(storage(), hooks=integer(1)) + b".",
        tensor(storage(), hooks=items(ORDERED_DICT)) + b".",
        b"ctorch\nFloatStorage\n" + integer(1 << 40) + b"\x85R.",
        b"ctorch._utils\n_rebuild_parameter\n" + items(ORDERED_DICT, b"\x88", EMPTY_DICT) + b"R.",
        text("a") + b")R.",
        b"(tR.",
        # Storages.
        text("a") + b"Q.",
        items(text("module"), ORDERED_DICT, text("0"), text("cpu"), integer(1)) + b"Q.",
        items(text("storage"), ORDERED_DICT, text("0"), text("cpu"), integer(1)) + b"Q.",
        items(text("storage"), text("x"), text("0"), text("cpu"), integer(1)) + b"Q.",
        storage(size=-1) + b".",
        storage(more=[items(text("0"), integer(0), integer(1))]) + b".",
        storage(key="0", more=[b"N", b"N"]) + b".",
        # Instructions that PyTorch does not write.
        b"I1\n.",
        b"Pabc\n.",
        b"(cos\nsystem\no.",
        b"(ios\nsystem\n.",
        b"\x82\x01.",
        EMPTY_DICT + b"2b.",
        b"\x8b\xff\xff\xff\x7f.",
        # Containers.
        EMPTY_DICT + b"N" + integer(2) + b"s.",
        EMPTY_DICT + b"(" + text("a") + b"u.",
        b"](" + text("a") + integer(1) + b"u.",
        EMPTY_DICT + integer(1) + b"a.",
        EMPTY_DICT + b"(" + integer(1) + b"e.",
        ORDERED_DICT + EMPTY_DICT + b"b.",
        tensor(storage()) + EMPTY_DICT + b"b.",
        # A wrong stack or memo, and ends.
        b"",
        b"\x80\x02",
        b".",
        b"R.",
        b"t.",
        b"\x87.",
        b"u.",
        b"q\x00.",
        b"h\x00.",
        b"j\xff\xff\xff\xff.",
        b"\x93.",
        b"X\xff\xff\xff\xffabc.",
        b"X\x02\x00\x00\x00\xff\xfe.",
        b"\xfe.",
        b"cos",
    ],
)
def test_what_pytorch_does_not_write(content):
    problem(content)


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((2, 3), (3, 1), 1),
        ((2, 3), (4, 1), 0),
        ((7,), (0,), 0),
        ((1 << 40, 1 << 40), (0, 0), 0),
        ((1,), (1,), 6),
        ((0,), (1,), 7),
        ((2,), (1 << 200,), 0),
        ((-1,), (1,), 0),
        ((2,), (-1,), 1),
        ((2,), (1,), -1),
        ((2, 3), (1,), 0),
        ((1,) * 9, (1,) * 9, 0),
    ],
)
def test_a_tensor_lies_in_its_storage(shape, strides, offset):
    problem(state_dict(a=tensor(storage(size=6), shape, strides, offset)))


def test_tensors_that_end_with_their_storage():
    for shape, strides, offset in (
        ((2, 2), (3, 1), 1),
        ((), (), 5),
        ((0, 9), (9, 1), 6),
        ((3,), (0,), 5),
    ):
        content = state_dict(a=tensor(storage(size=6), shape, strides, offset))
        assert read(content)["a"].shape == shape


def test_booleans_are_no_sizes():
    shape = b"(\x88t"
    content = REBUILD + items(storage(), integer(0), shape, shape, b"\x89", EMPTY_DICT) + b"R."
    problem(content)


def test_values_that_grow_exponentially_stay_small():
    """2**2000 items by references: as a key, a storage, a tensor and an argument."""
    nested = b")q\x00" + b"h\x00h\x00\x86q\x00" * 2000
    for end in (b"Q.", EMPTY_DICT + b"h\x00Ns.", b"h\x00R.", ORDERED_DICT + b"h\x00R.", b"h\x00b."):
        problem(nested + end)
    assert "tuple" in problem(nested + EMPTY_DICT + b"h\x00Ns.")


def test_containers_that_contain_themselves():
    value = read(EMPTY_DICT + b"q\x00" + text("a") + b"h\x00s.")
    assert value["a"] is value
    problem(EMPTY_DICT + b"q\x00" + text("a") + b"h\x00sQ.")


def test_deep_nesting_needs_no_recursion():
    value = read(b")" + b"\x85" * 100_000 + b".")
    assert len(value) == 1
