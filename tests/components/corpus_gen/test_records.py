from __future__ import annotations

import errno
import re

import pytest
import tensorflow as tf

from components.corpus_gen.records import Encoder, ShardWriter, os_errors


def test_a_row_becomes_a_tf_example():
    record = Encoder(["source", "target"], "/data/a.en.gz")(7, ["one", "漢"])
    parsed = tf.io.parse_single_example(
        record,
        {
            **{n: tf.io.FixedLenFeature([], tf.string) for n in ("source", "target", "file")},
            "line": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    assert parsed["target"].numpy().decode() == "漢"
    assert parsed["file"].numpy() == b"a.en.gz"
    assert parsed["line"].numpy() == 7


def test_shards_hold_their_number_of_rows_in_order(tmp_path):
    writer = ShardWriter(str(tmp_path / "part"), rows_per_shard=2)
    for i in range(5):
        writer.write(b"%d" % i)
    writer.close()
    shards = sorted(tmp_path.iterdir())
    assert [path.name for path in shards] == [f"part-0000{i}.gz" for i in range(3)]
    rows = [
        [r.numpy() for r in tf.data.TFRecordDataset(str(p), compression_type="GZIP")]
        for p in shards
    ]
    assert rows == [[b"0", b"1"], [b"2", b"3"], [b"4"]]


def test_a_shard_that_is_not_ended_has_no_name_of_its_own(tmp_path):
    writer = ShardWriter(str(tmp_path / "part"))
    writer.write(b"row")
    (unfinished,) = tmp_path.iterdir()
    assert re.fullmatch(r"part-00000\.gz\.[0-9a-f]{8}\.tmp", unfinished.name)
    writer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000.gz"]


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="none"):
        ShardWriter(str(tmp_path / "none" / "part")).write(b"row")


def test_a_full_disk_is_an_os_error():
    with pytest.raises(OSError, match="full") as caught, os_errors():
        raise tf.errors.ResourceExhaustedError(None, None, "full")
    assert caught.value.errno == errno.ENOSPC
