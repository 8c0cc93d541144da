"""Files of transformed rows: what is written is read, in any order, or refused."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from regard.components.common.row_files import LENGTHS, RowFiles, write_rows
from regard.core.errors import UserError

TYPES = {"ids": pa.int64(), "image": pa.large_binary(), "score": pa.float32(), LENGTHS: pa.int64()}
SCHEMA = pa.schema({name: pa.large_list(kind) for name, kind in TYPES.items()})


def rows_of(count, seed=0):
    random = np.random.default_rng(seed)
    return {
        "ids": [random.integers(0, 2**31, n).tolist() for n in random.integers(0, 5, count)],
        "image": [[random.bytes(n)] for n in random.integers(0, 20, count)],
        "score": [[float(x)] for x in random.random(count, np.float32)],
        LENGTHS: [random.integers(0, 9, n).tolist() for n in random.integers(0, 3, count)],
    }


def write(path, rows, batch_rows=7):
    batch = pa.RecordBatch.from_pydict(rows, SCHEMA)
    batches = (batch.slice(i, batch_rows) for i in range(0, len(batch), batch_rows))
    write_rows(path, SCHEMA, batches)
    return str(path)


@pytest.fixture
def files(tmp_path):
    parts = [rows_of(count, count) for count in (20, 0, 1, 15)]
    return [write(tmp_path / f"{i}.arrow", part) for i, part in enumerate(parts)], parts


def test_rows_are_read_in_any_order(files):
    paths, parts = files
    reader = RowFiles(paths)
    whole = {name: [row for part in parts for row in part[name]] for name in TYPES}
    training_rows = [(r, n) for r, row in enumerate(whole[LENGTHS]) for n in range(len(row))]
    assert reader.lengths.tolist() == [n for row in whole[LENGTHS] for n in row]
    assert reader.lengths.dtype == np.int32
    random = np.random.default_rng(1)
    for count in (1, 5, len(training_rows)):
        numbers = random.permutation(len(training_rows))[:count]
        columns, references = reader.read(numbers)
        assert references.tolist() == [training_rows[i][1] for i in numbers]
        assert set(columns) == {"ids", "image", "score"}
        for name, column in columns.items():
            actual = [column[row].tolist() for row in range(len(column))]
            assert actual == [whole[name][training_rows[i][0]] for i in numbers]


def test_a_file_has_the_same_bytes_however_it_is_written(tmp_path):
    rows = rows_of(20)
    one, other = write(tmp_path / "a", rows), write(tmp_path / "b", rows)
    reverse = pa.schema(list(SCHEMA)[::-1])
    batch = pa.RecordBatch.from_pydict(rows, reverse)
    write_rows(tmp_path / "c", reverse, (batch.slice(i, 7) for i in range(0, 20, 7)))
    contents = {Path(path).read_bytes() for path in (one, other, tmp_path / "c")}
    assert len(contents) == 1


def test_a_sample_is_drawn_from_all_files(files):
    reader = RowFiles(files[0])
    counts = [len(row) for part in files[1] for row in part[LENGTHS]]
    rows = np.repeat(np.arange(len(counts)), counts)
    mask = reader.sample(12)
    assert (mask == reader.sample(12)).all()
    chosen = set(rows[mask])
    assert len(chosen) <= 12
    assert min(chosen) < 18 <= 20 < max(chosen)
    assert mask.tolist() == [row in chosen for row in rows]
    assert reader.sample(1000).all()


@pytest.mark.parametrize("size", ["empty", "half", "no end", "one batch less"])
def test_a_truncated_file_is_refused(tmp_path, size):
    path = tmp_path / "rows.arrow"
    write(path, rows_of(20))
    content = path.read_bytes()
    write(path, {name: rows[:14] for name, rows in rows_of(20).items()})
    shorter = len(path.read_bytes()) - 8
    ends = {"empty": 0, "half": len(content) // 2, "no end": -8, "one batch less": shorter}
    path.write_bytes(content[: ends[size]])
    with pytest.raises(UserError, match="cannot be read") as raised:
        RowFiles([str(path)])
    assert raised.value.where == str(path)
    assert "--from Preprocess" in raised.value.remedy


def test_every_damaged_byte_is_found_or_harmless(tmp_path):
    path = tmp_path / "rows.arrow"
    write(path, rows_of(3, seed=4), batch_rows=2)
    content = path.read_bytes()
    reader = RowFiles([str(path)])
    everything = np.arange(len(reader.lengths))
    expected = str(reader.read(everything)) + str(reader.lengths.tolist())
    damaged, refused = tmp_path / "damaged.arrow", 0
    for place in range(len(content)):
        copy = bytearray(content)
        copy[place] ^= 1 << place % 8
        damaged.write_bytes(copy)
        try:
            reader = RowFiles([str(damaged)])
        except UserError:
            refused += 1
        else:  # padding, or a field that nothing reads
            assert str(reader.read(everything)) + str(reader.lengths.tolist()) == expected
    assert refused > len(content) / 3


@pytest.mark.parametrize("kind", ["text", "gzip", "arrow", "folder", "missing"])
def test_other_files_are_refused(tmp_path, kind):
    path = tmp_path / "rows.arrow"
    if kind == "text":
        path.write_text("source\ttarget\n" * 50)
    elif kind == "gzip":
        path.write_bytes(gzip.compress(bytes(500)))
    elif kind == "arrow":
        batch = pa.RecordBatch.from_pydict(rows_of(3), SCHEMA)
        with pa.ipc.new_stream(str(path), SCHEMA) as writer:
            writer.write_batch(batch)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(UserError, match="cannot be read") as raised:
        RowFiles([str(path)])
    assert raised.value.where == str(path)


def test_a_file_with_other_columns_is_refused(tmp_path):
    paths = [write(tmp_path / "a.arrow", rows_of(3)), str(tmp_path / "b.arrow")]
    fewer = SCHEMA.remove(SCHEMA.get_field_index("score"))
    columns = {name: values for name, values in rows_of(3).items() if name != "score"}
    write_rows(paths[1], fewer, [pa.RecordBatch.from_pydict(columns, fewer)])
    with pytest.raises(UserError, match="columns") as raised:
        RowFiles(paths)
    assert raised.value.where == paths[1]


def test_workers_share_the_verification(tmp_path):
    """Each checksum is verified by one of them."""
    path = tmp_path / "rows.arrow"
    write(path, rows_of(21))
    content = bytearray(path.read_bytes())
    place = content.rindex(rows_of(21)["image"][-1][0])
    content[place] ^= 1
    path.write_bytes(content)
    results = []
    for worker in range(2):
        try:
            RowFiles([str(path)], (worker, 2))
            results.append("read")
        except UserError:
            results.append("refused")
    assert results == ["refused", "read"]  # it is in the third of three record batches


def test_numbers_of_more_than_32_bits_are_refused(tmp_path):
    rows = {**rows_of(1), "ids": [[2**31]]}
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        write(tmp_path / "rows.arrow", rows)
    assert not list(tmp_path.iterdir())
