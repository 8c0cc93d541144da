import errno
import re

import pytest
import tensorflow as tf

from regard.components.corpus_gen.example_writer import (
    ExampleEncoder,
    ShardWriter,
    python_os_errors,
)
from regard.components.data.images import Images
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.features import Feature
from regard.core.kinds import KINDS
from tests.components.corpora import CAPTIONED, SUMMARISED, TRANSLATION


def test_row_becomes_tf_example():
    record = ExampleEncoder(TRANSLATION, "/data/a.en.gz", Images(""))(7, ["one", "漢"])
    stored = tf.train.Example.FromString(record).features.feature
    assert stored["target"].bytes_list.value == ["漢".encode()]
    assert stored["file"].bytes_list.value == [b"a.en.gz"]
    assert stored["line"].int64_list.value == [7]


def test_unfinished_shard_has_temporary_name(tmp_path):
    writer = ShardWriter(str(tmp_path / "part"))
    writer.write(b"row")
    (unfinished,) = tmp_path.iterdir()
    assert re.fullmatch(r"part-00000\.gz\.[0-9a-f]{8}\.tmp", unfinished.name)
    writer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000.gz"]


def test_full_disk_is_an_os_error():
    with pytest.raises(OSError, match="full") as caught, python_os_errors():
        raise tf.errors.ResourceExhaustedError(None, None, "full")
    assert caught.value.errno == errno.ENOSPC


def test_reused_example_gives_the_same_bytes():
    rows = [["a" * 1000, ["b", "c"], "d"], ["a", [], None], ["e", ["f"], "g"]]
    encode = ExampleEncoder(SUMMARISED, "a.tsv", Images(""))
    for number in range(3000):  # more bytes than one example is used for
        record = encode(number, rows[number % 3])
    for number, values in enumerate(rows):
        alone = ExampleEncoder(SUMMARISED, "a.tsv", Images(""))(number, values)
        assert encode(number, values) == alone
    stored = tf.train.Example.FromString(encode(1, rows[1])).features.feature
    assert list(stored["summary"].bytes_list.value) == list(stored["title"].bytes_list.value) == []
    assert len(record) < 200


def encoded(features, values, root=""):
    encode = ExampleEncoder(features, "a.tsv", Images(root))
    return tf.train.Example.FromString(encode(1, values)).features.feature


def test_image_is_bytes_and_path(tmp_path):
    (tmp_path / "a.png").write_bytes(b"bytes")
    stored = encoded(CAPTIONED, ["a.png", ["x"]], str(tmp_path))
    assert stored["image"].bytes_list.value == [b"bytes"]
    assert stored["image_file"].bytes_list.value == [b"a.png"]
    with pytest.raises(UnreadableFile, match="the image cannot be read"):
        encoded(CAPTIONED, ["b.png", ["x"]], str(tmp_path))


def test_missing_value_is_an_empty_list_of_its_type():
    kinds = {"text": "bytes", "image": "bytes", "number": "float", "points": "float"}
    kinds["positions"] = "int64"
    features = [Feature(kind, KINDS[kind], optional=True) for kind in kinds]
    stored = encoded(features, [None] * len(kinds))
    for kind, expected in {**kinds, "image_file": "bytes"}.items():
        assert stored[kind].WhichOneof("kind") == f"{expected}_list"
        assert not getattr(stored[kind], f"{expected}_list").value


@pytest.mark.parametrize("limit", [{"rows_per_shard": 3}, {"bytes_per_shard": 10}])
def test_shards_are_limited(tmp_path, limit):
    writer = ShardWriter(str(tmp_path / "part"), **limit)
    for size in (4, 5, 6, 20, 1):
        writer.write(b"x" * size)
    writer.close()
    shards = sorted(tmp_path.iterdir())
    sizes = [[len(r.numpy()) for r in tf.data.TFRecordDataset(str(p), "GZIP")] for p in shards]
    assert sizes == ([[4, 5, 6], [20, 1]] if "rows_per_shard" in limit else [[4, 5, 6], [20], [1]])
    assert [path.name for path in shards] == [f"part-0000{i}.gz" for i in range(len(sizes))]
