"""Reading `pytorch_model.bin`: values, both formats, and hostile archives."""

import contextlib
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.components.importing.pytorch_file import MAX_PICKLE_BYTES, read_pytorch
from regard.core.errors import UserError
from tests.components.importing.pytorch_files import (
    integer,
    state_dict,
    storage,
    tensor,
    text,
    write_zip,
)

MODELS = Path(__file__).parent / "huggingface"
# torch.save({"a.weight": w, "a.t": w.t(), "b": …, "half": …}, _use_new_zipfile_serialization=False)
# of PyTorch 2.15, with w = torch.arange(6.0).reshape(2, 3).
OLD = Path(__file__).with_name("torch_1_5.bin")
FLOATS = struct.pack("<6f", 0, 1, 2, 3, 4, 5)


def problem(path):
    with pytest.raises(UserError) as error:
        read_pytorch(path)
    assert error.value.where == str(path)
    assert error.value.remedy
    return error.value.message


def values(path):
    with read_pytorch(path) as tensors:
        return {name: tensors[name].tolist() for name in tensors}


def test_tensors_that_share_a_storage(tmp_path):
    whole = tensor(storage("0"))
    turned = tensor(storage("0"), (3, 2), (1, 3))
    column = tensor(storage("0"), (2,), (3,), 2)
    scalar = tensor(storage("1", 1, "HalfStorage"), (), ())
    pickled = state_dict(whole=whole, turned=turned, column=column, scalar=scalar)
    path = write_zip(tmp_path / "x.bin", pickled, data_0=FLOATS, data_1=struct.pack("<e", 0.5))
    assert values(path) == {
        "whole": [[0, 1, 2], [3, 4, 5]],
        "turned": [[0, 3], [1, 4], [2, 5]],
        "column": [2, 5],
        "scalar": 0.5,
    }


def test_the_format_before_1_6():
    assert values(OLD) == {
        "a.weight": [[0, 1, 2], [3, 4, 5]],
        "a.t": [[0, 3], [1, 4], [2, 5]],
        "b": [1, 2],
        "half": 1.5,
    }


@pytest.mark.parametrize("name", ["marian-pytorch", "marian-separate-untied", "m2m-unscaled"])
def test_files_of_pytorch(name):
    """Tied tensors stand in the file under each of their names."""
    with read_pytorch(MODELS / name / "pytorch_model.bin") as tensors:
        arrays = dict(tensors)
    assert all(np.isfinite(array).all() for array in arrays.values())
    assert {array.dtype for array in arrays.values()} == {np.dtype("float32")}
    if name != "marian-separate-untied":
        np.testing.assert_array_equal(arrays["lm_head.weight"], arrays["model.shared.weight"])
    assert arrays["model.encoder.layers.0.fc1.weight"].shape[0] == 16


def test_no_module_of_pytorch_is_imported():
    code = (
        "import sys; from regard.components.importing.pytorch_file import read_pytorch; "
        f"print(len(list(read_pytorch({str(OLD)!r}).values()))); "
        "print({'torch', 'tensorflow', 'safetensors', 'pickle'} & set(sys.modules) - {'pickle'})"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.split() == ["4", "set()"]


def test_a_command_is_not_executed(tmp_path):
    class Command:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'harm'}",)

    content = pickle.dumps({"weight": Command()}, 2)
    assert "system" in problem(write_zip(tmp_path / "x.bin", content))
    old = OLD.read_bytes()
    magic = old[: old.index(b".", 1) + 1]
    for position in (0, 1, 2):  # as the protocol, the properties of the machine, the content
        pickles = [pickle.dumps(1001, 2), pickle.dumps({"little_endian": True}, 2), content]
        pickles[position] = content
        (tmp_path / "y.bin").write_bytes(magic + b"".join(pickles))
        problem(tmp_path / "y.bin")
    (tmp_path / "z.bin").write_bytes(content)  # a pickle alone
    problem(tmp_path / "z.bin")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (state_dict(a=tensor(storage())), {}),
        (state_dict(a=tensor(storage())), {"data_0": FLOATS[:-4]}),
        (state_dict(a=tensor(storage())), {"data_0": FLOATS + b"1234"}),
        (state_dict(a=tensor(storage(size=1 << 60))), {"data_0": FLOATS}),
        (state_dict(a=tensor(storage())), {"data_0": FLOATS, "byteorder": b"big"}),
        (state_dict(a=tensor(storage("../../etc/passwd"))), {"data_0": FLOATS}),
        (state_dict(a=tensor(storage("/etc/passwd"))), {"data_0": FLOATS}),
        (state_dict(a=tensor(storage("")), b=integer(1)), {"data_": FLOATS}),
        (state_dict(a=tensor(storage()), b=text("x")), {"data_0": FLOATS}),
        (state_dict(), {"data_0": FLOATS}),
        (integer(1) + b".", {"data_0": FLOATS}),
        (state_dict(a=tensor(storage())), {"data_0": FLOATS, "constants.pkl": b"."}),
        (b"", {}),
        (bytes(MAX_PICKLE_BYTES + 1), {}),
    ],
)
def test_damaged_content(tmp_path, content, records):
    problem(write_zip(tmp_path / "x.bin", content, **records))


def test_compressed_records(tmp_path):
    """A zip bomb: 64 MB would be unpacked from 64 kB."""
    content = state_dict(a=tensor(storage(size=1 << 24), (1 << 24,), (1,)))
    path = write_zip(tmp_path / "x.bin", content, zipfile.ZIP_DEFLATED, data_0=bytes(1 << 26))
    assert path.stat().st_size < 1 << 20
    assert "compressed" in problem(path)


def test_wrong_checksums_and_overlapping_records(tmp_path):
    path = write_zip(tmp_path / "x.bin", state_dict(a=tensor(storage())), data_0=FLOATS)
    content = path.read_bytes()
    path.write_bytes(content.replace(FLOATS, FLOATS[::-1]))
    assert "checksum" in problem(path)
    # The directory of thousand records that are all the same bytes.
    directory = content[content.index(b"PK\x01\x02") : content.index(b"PK\x05\x06")]
    start = content.index(b"PK\x01\x02")
    entries = directory * 1000
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 2000, 2000, len(entries), start, 0)
    path.write_bytes(content[:start] + entries + end)
    problem(path)


def test_the_directory_is_bounded_before_it_is_read(tmp_path):
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 9, 9, 1 << 30, 4, 0)
    path = tmp_path / "x.bin"
    with open(path, "wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate((1 << 30) + 4)
        file.seek(0, os.SEEK_END)
        file.write(end)
    assert "names" in problem(path)


def test_two_archives_and_no_archive(tmp_path):
    path = tmp_path / "x.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", state_dict())
        archive.writestr("b/data.pkl", state_dict())
    problem(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    problem(path)
    for content in (
        b"PK\x03\x04",
        b"PK\x03\x04" + bytes(100),
        b"\x80\x02}.",
        bytes(100),
        b"\x89HDF",
    ):
        path.write_bytes(content)
        problem(path)


@pytest.mark.parametrize("size", [20, 300, 650, 713])
def test_incomplete_old_files(tmp_path, size):
    (tmp_path / "x.bin").write_bytes(OLD.read_bytes()[:size])
    problem(tmp_path / "x.bin")


def test_old_files_of_other_machines(tmp_path):
    for before, after in (
        (b"little_endianq\x02\x88", b"little_endianq\x02\x89"),
        (b"M\xe9\x03", b"M\xe8\x03"),
    ):
        content = OLD.read_bytes()
        assert before in content
        (tmp_path / "x.bin").write_bytes(content.replace(before, after))
        problem(tmp_path / "x.bin")


def test_incomplete_archives(tmp_path):
    content = (MODELS / "marian-pytorch" / "pytorch_model.bin").read_bytes()
    for size in (100, len(content) // 2, len(content) - 1):
        (tmp_path / "x.bin").write_bytes(content[:size])
        problem(tmp_path / "x.bin")


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([OLD, MODELS / "marian-pytorch" / "pytorch_model.bin"]), st.data())
def test_changed_bytes_are_read_or_refused(tmp_path_factory, source, data):
    content = bytearray(source.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, 2000) | st.integers(0, len(content))) % len(content)
        content[position : position + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=3)
        )
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "x.bin").write_bytes(content)
    with contextlib.suppress(UserError), read_pytorch(folder / "x.bin") as tensors:
        assert all(isinstance(array, np.ndarray) for array in tensors.values())
    shutil.rmtree(folder)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_changed_pickle_in_a_valid_archive(tmp_path_factory, data):
    """The checksum refuses most changes of an archive, so the pickle is changed before."""
    content = bytearray(state_dict(a=tensor(storage()), b=tensor(storage(), (2,), (3,), 2)))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position : position + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=3)
        )
    folder = tmp_path_factory.mktemp("fuzz")
    with (
        contextlib.suppress(UserError),
        read_pytorch(write_zip(folder / "x.bin", bytes(content), data_0=FLOATS)) as tensors,
    ):
        assert all(array.size <= 6 for array in tensors.values())
    shutil.rmtree(folder)
