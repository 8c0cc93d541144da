"""Write files of PyTorch by hand, valid and hostile ones."""

import struct
import zipfile

ORDERED_DICT = b"ccollections\nOrderedDict\n"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
EMPTY_DICT = ORDERED_DICT + b")R"


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value):
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def items(*values):
    return b"(" + b"".join(values) + b"t"


def storage(key="0", size=6, kind="FloatStorage", more=()):
    kind = b"ctorch\n" + kind.encode() + b"\n"
    return items(text("storage"), kind, text(key), text("cpu"), integer(size), *more) + b"Q"


def tensor(storage, shape=(2, 3), strides=(3, 1), offset=0, hooks=EMPTY_DICT):
    shape, strides = (items(*map(integer, sizes)) for sizes in (shape, strides))
    return REBUILD + items(storage, integer(offset), shape, strides, b"\x89", hooks) + b"R"


def state_dict(**tensors):
    pairs = b"".join(text(name) + value for name, value in tensors.items())
    return b"\x80\x02" + EMPTY_DICT + b"(" + pairs + b"u."


def write_zip(path, pickle, compression=zipfile.ZIP_STORED, folder="archive", **records):
    """Write the records of `torch.save`; keys such as ``data_0`` name ``data/0``."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(f"{folder}/data.pkl", pickle)
        for name, content in records.items():
            archive.writestr(f"{folder}/{name.replace('_', '/')}", content)
    return path
