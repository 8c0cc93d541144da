from __future__ import annotations

import errno
import re

import pytest
import tensorflow as tf

from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken
from components.corpus_gen.records import Encoder, ShardWriter, os_errors
from models.tasks.features import Feature
from tests.components.corpus_gen.corpora import (
    CAPTIONED,
    POINTED,
    SCORED,
    SUMMARISED,
    TRANSLATION,
)


def test_a_row_becomes_a_tf_example():
    features = [Feature.from_json(content) for content in TRANSLATION]
    record = Encoder(features, "/data/a.en.gz", Images({}))(7, ["one", "漢"])
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


def test_a_row_has_nothing_of_the_rows_before_it_and_the_same_bytes_after_many():
    features = [Feature.from_json(f) for f in SUMMARISED]
    rows = [["a" * 1000, ["b", "c"], "d"], ["a", [], None], ["e", ["f"], "g"]]
    encode = Encoder(features, "a.tsv", Images({}))
    for number in range(3000):  # more bytes than are kept in one
        record = encode(number, rows[number % 3])
    for number, values in enumerate(rows):
        alone = Encoder(features, "a.tsv", Images({}))(number, values)
        assert encode(number, values) == alone
    kept = tf.train.Example.FromString(encode(1, rows[1])).features.feature
    assert list(kept["summary"].bytes_list.value) == list(kept["title"].bytes_list.value) == []
    assert len(record) < 200


def stored(features, values, root=""):
    encode = Encoder([Feature.from_json(f) for f in features], "a.tsv", Images({"root": root}))
    return tf.train.Example.FromString(encode(1, values)).features.feature


def test_numbers_points_positions_and_several_texts():
    kept = stored(SCORED, [2.5, "a", "b"])
    assert kept["score"].float_list.value == [2.5]
    kept = stored(POINTED, [[0.0, 0.5, 1.0, 2.0], [1, 0]])
    assert kept["points"].float_list.value == [0.0, 0.5, 1.0, 2.0]
    assert kept["answer"].int64_list.value == [1, 0]
    kept = stored(SUMMARISED, ["a", ["b", "c"], "d"])
    assert kept["summary"].bytes_list.value == [b"b", b"c"]
    assert kept["title"].bytes_list.value == [b"d"]


def test_an_image_is_its_bytes_and_its_path(tmp_path):
    (tmp_path / "a.png").write_bytes(b"bytes")
    kept = stored(CAPTIONED, ["a.png", ["x"]], str(tmp_path))
    assert kept["image"].bytes_list.value == [b"bytes"]
    assert kept["image_file"].bytes_list.value == [b"a.png"]
    with pytest.raises(Broken, match="the image cannot be read"):
        stored(CAPTIONED, ["b.png", ["x"]], str(tmp_path))


def test_what_is_missing_is_an_empty_list_of_its_kind():
    kinds = {"text": "bytes", "image": "bytes", "number": "float", "points": "float"}
    kinds["positions"] = "int64"
    features = [Feature(kind, kind, optional=True).to_json() for kind in kinds]
    kept = stored(features, [None] * len(kinds))
    for kind, expected in {**kinds, "image_file": "bytes"}.items():
        assert kept[kind].WhichOneof("kind") == f"{expected}_list"
        assert not getattr(kept[kind], f"{expected}_list").value


def test_a_shard_of_many_bytes_ends_before_its_number_of_rows(tmp_path):
    writer = ShardWriter(str(tmp_path / "part"), bytes_per_shard=10)
    for size in (4, 5, 6, 20, 1):
        writer.write(b"x" * size)
    writer.close()
    shards = [
        [len(r.numpy()) for r in tf.data.TFRecordDataset(str(path), compression_type="GZIP")]
        for path in sorted(tmp_path.iterdir())
    ]
    assert shards == [[4, 5, 6], [20], [1]]
