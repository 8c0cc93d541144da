"""Read the pickle of a state dict of PyTorch without executing anything.

A pickle is a program for a stack machine. Python's own machine imports what the program names, and
calls it. This one has only the instructions that `torch.save` writes for a dictionary of tensors.
A name in the program stays a name: nothing is imported, and no attribute is set. PyTorch's
`torch.load(weights_only=True)` has the same design.
"""

import math
import pickletools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from regard.components.importing.tensor_file import MAX_DIMENSIONS, quote
from regard.core.errors import UserError

# Storage classes of PyTorch and their element types in `tensor_file.ELEMENT_TYPES`.
_STORAGES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    "LongStorage": "I64",
    "IntStorage": "I32",
    "ShortStorage": "I16",
    "CharStorage": "I8",
    "ByteStorage": "U8",
    "BoolStorage": "BOOL",
}
_DICT = "collections.OrderedDict"
_TENSOR = "torch._utils._rebuild_tensor_v2"
_PARAMETER = "torch._utils._rebuild_parameter"
# Of float8, unsigned integers and quantized tensors.
_UNSUPPORTED = {"torch._utils._rebuild_tensor_v3", "torch._utils._rebuild_qtensor"}
_NAMES = {_DICT, _TENSOR, _PARAMETER, *(f"torch.{name}" for name in _STORAGES)}

_CONSTANTS = {
    "BININT",
    "BININT1",
    "BININT2",
    "LONG1",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINFLOAT",
}
_VALUES = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_WITHOUT_EFFECT = {"PROTO", "FRAME"}
_MARK = object()


@dataclass(frozen=True)
class GlobalName:
    """The name of a class or function in a pickle, such as ``torch.FloatStorage``."""

    name: str


@dataclass(frozen=True)
class PickledStorage:
    """A block of elements that lies elsewhere in the file.

    Attributes:
        element_type: A key of `tensor_file.ELEMENT_TYPES`.
        key: The name of the block.
        size: Number of elements.
    """

    element_type: str
    key: str
    size: int


@dataclass(frozen=True)
class PickledTensor:
    """A tensor that shows a part of a storage; its bounds are checked.

    Attributes:
        storage: The storage.
        offset: The first element in the storage.
        shape: The shape.
        strides: The distance of neighbours in each dimension, in elements.
    """

    storage: PickledStorage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _InvalidPickleError(Exception):
    """The program is not what `torch.save` writes; the message continues "The file …"."""


def read_pickle(path: Path, stream: BinaryIO) -> Any:
    """Read one pickle of strings, numbers, tuples, lists, dictionaries and tensors.

    Args:
        path: the file, for messages.
        stream: the pickle in memory, whose size the caller has bounded; it is left after its end.

    Raises:
        UserError: the pickle is damaged, or contains anything else; nothing was executed.
    """
    try:
        return _run(path, stream)
    except _InvalidPickleError as error:
        raise damaged(path, str(error)) from error
    except (IndexError, KeyError, ValueError, TypeError, OverflowError) as error:
        # ValueError: pickletools cannot read an instruction. The others: a wrong stack or memo.
        raise damaged(path, "has an invalid pickle") from error


def damaged(path: Path, problem: str) -> UserError:
    """Return the error of a file that PyTorch did not write, or not completely."""
    return UserError(
        f"The file of PyTorch {problem}. It is damaged, or it is not a state dict.",
        str(path),
        "Download the file again, or save the model as `model.safetensors` with "
        "`model.save_pretrained(folder)` of Transformers.",
    )


def _run(path: Path, stream: BinaryIO) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(stream):
        name = opcode.name
        if name in _CONSTANTS:
            stack.append(argument)
        elif name in _VALUES:
            stack.append(_VALUES[name])
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _TUPLES:
            count = _TUPLES[name]
            if len(stack) < count:
                raise _InvalidPickleError("has an invalid pickle")
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "GLOBAL":
            stack.append(_global(path, argument.replace(" ", ".")))
        elif name == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(_global(path, f"{module:s}.{attribute:s}"))
        elif name == "STOP":
            return stack.pop()
        elif name not in _WITHOUT_EFFECT:
            _change_stack(name, stack)
    raise _InvalidPickleError("has a pickle without an end")


def _change_stack(name: str, stack: list[Any]) -> None:
    """Execute an instruction that makes or changes a container, a storage or a tensor."""
    if name == "MARK":
        stack.append(_MARK)
    elif name == "EMPTY_DICT":
        stack.append({})
    elif name == "EMPTY_LIST":
        stack.append([])
    elif name == "TUPLE":
        items = _pop_to_mark(stack)
        stack.append(tuple(items))
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        _set_items(stack[-1], [key, value])
    elif name == "SETITEMS":
        items = _pop_to_mark(stack)
        _set_items(stack[-1], items)
    elif name == "APPEND":
        value = stack.pop()
        _list(stack[-1]).append(value)
    elif name == "APPENDS":
        items = _pop_to_mark(stack)
        _list(stack[-1]).extend(items)
    elif name == "BINPERSID":
        stack.append(_storage(stack.pop()))
    elif name == "REDUCE":
        arguments, function = stack.pop(), stack.pop()
        stack.append(_call(function, arguments))
    elif name == "BUILD":
        # `state_dict()` has an attribute `_metadata`, the versions of modules. It is not needed.
        stack.pop()
        if type(stack[-1]) is not dict:
            raise _InvalidPickleError("sets attributes of something other than a dictionary")
    else:
        raise _InvalidPickleError(f"has the pickle instruction {name}")


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    start = next(i for i in range(len(stack) - 1, -2, -1) if i < 0 or stack[i] is _MARK)
    if start < 0:
        raise _InvalidPickleError("has an invalid pickle")
    items = stack[start + 1 :]
    del stack[start:]
    return items


def _set_items(target: object, items: list[Any]) -> None:
    if type(target) is not dict or len(items) % 2:
        raise _InvalidPickleError("sets items of something other than a dictionary")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if type(key) not in (str, int):  # the state of an optimizer has numbers
            raise _InvalidPickleError(f"has the name {quote(key)}, which is not a text")
        target[key] = value


def _list(target: object) -> list[Any]:
    if type(target) is not list:
        raise _InvalidPickleError("extends something other than a list")
    return target


def _global(path: Path, name: str) -> GlobalName:
    if name in _NAMES:
        return GlobalName(name)
    if name in _UNSUPPORTED:
        raise UserError(
            "The file of PyTorch has tensors of an element type that Regard cannot read.",
            str(path),
            "Quantized models cannot be imported. Save the model with "
            "`model.float().save_pretrained(folder)`, and import that folder.",
        )
    raise UserError(
        f"The file of PyTorch uses {quote(name)}, which no dictionary of tensors needs. Regard did "
        "not execute it.",
        str(path),
        "A file that executes code may harm your computer: import only files of people that you "
        "trust, as `model.safetensors`. If you know the file, load it in a safe place with "
        "Transformers, and save it with `model.save_pretrained(folder)`.",
    )


def _storage(value: object) -> PickledStorage:
    """Return a storage of its persistent id, whose last item older files add."""
    match value:
        case ("storage", GlobalName(name), str(key), str(), int(size), *rest):
            kind = _STORAGES.get(name.removeprefix("torch."))
            if kind is not None and type(size) is int and size >= 0 and rest in ([], [None]):
                return PickledStorage(kind, key, size)
    raise _InvalidPickleError(f"has the invalid storage {_kind(value)}")


def _call(function: object, arguments: object) -> object:
    match function, arguments:
        case GlobalName(name), () if name == _DICT:
            return {}
        case GlobalName(name), (PickledTensor() as tensor, bool(), dict()) if name == _PARAMETER:
            return tensor
        case (
            GlobalName(name),
            (
                PickledStorage() as storage,
                int(offset),
                tuple(shape),
                tuple(strides),
                bool(),
                dict(),
                *_,
            ),
        ) if name == _TENSOR:
            return _tensor(storage, offset, shape, strides)
    name = function.name if isinstance(function, GlobalName) else "a value"
    raise _InvalidPickleError(f"calls {name} with other arguments than PyTorch does")


def _tensor(
    storage: PickledStorage, offset: int, shape: tuple[Any, ...], strides: tuple[Any, ...]
) -> PickledTensor:
    numbers = (offset, *shape, *strides)
    if any(type(number) is not int or number < 0 for number in numbers):
        raise _InvalidPickleError("has a tensor whose sizes are no natural numbers")
    if len(shape) != len(strides) or len(shape) > MAX_DIMENSIONS:
        raise _InvalidPickleError(
            f"has a tensor of {len(shape)} dimensions and {len(strides)} strides"
        )
    size = math.prod(shape)
    last = offset + sum((length - 1) * step for length, step in zip(shape, strides, strict=True))
    # A tensor with a stride of 0 could have more elements than the file.
    if size > storage.size or (size and last >= storage.size) or offset > storage.size:
        raise _InvalidPickleError(
            f"has a tensor beyond the end of its storage {quote(storage.key)}"
        )
    return PickledTensor(storage, offset, shape, strides)


def _kind(value: object) -> str:
    return f"of {len(value)} items" if isinstance(value, tuple) else type(value).__name__
