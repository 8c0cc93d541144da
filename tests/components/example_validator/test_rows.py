from __future__ import annotations

import pytest
import tensorflow as tf

from components.corpus_gen.images import Images
from components.corpus_gen.records import Encoder
from components.example_validator.rows import Image, Row, Shard, fetch, read, shown
from components.example_validator.tally import reference
from models.tasks.features import Feature

PAIR = [Feature("source", "text"), Feature("target", "text", role="reference")]


@pytest.fixture
def shard(tmp_path):
    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for i in range(5):
            example = tf.train.Example()
            feature = example.features.feature
            feature["source"].bytes_list.value.append(f"ü{i}".encode())
            feature["target"].bytes_list.value.extend([b"t"] * (i != 3))
            feature["file"].bytes_list.value.append(b"a.en")
            feature["line"].int64_list.value.append(i + 1)
            writer.write(example.SerializeToString())
    return Shard(0, "train", path)


def test_rows_come_back_whatever_the_batch(shard):
    rows = list(read(shard.path, PAIR, batch=2))
    assert rows == list(read(shard.path, PAIR))
    assert rows[4] == Row([["ü4"], ["t"]], "a.en", 5)
    assert rows[3].values == [["ü3"], []]


def test_rows_are_fetched_by_reference(shard):
    refs = {reference(0, 0), reference(0, 4)}
    rows = fetch([shard], PAIR, refs)
    assert {ref: row.line for ref, row in rows.items()} == {0: 1, 4: 5}
    assert rows[4] == Row([["ü4"], ["t"]], "a.en", 5)


KINDS = [
    Feature("score", "number"),
    Feature("image", "image"),
    Feature("points", "points"),
    Feature("answer", "positions", role="reference"),
    Feature("caption", "text", role="reference", several=True),
]


def test_values_of_every_kind(tmp_path):
    encoded = Encoder(KINDS, "a.tsv", Images({"root": str(tmp_path)}))
    (tmp_path / "a.png").write_bytes(b"bytes")
    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        writer.write(encoded(1, [3.3, "a.png", [0.0, 0.5, 1.0, 2.0], [1, 0], ["x", "y"]]))
    (row,) = read(path, KINDS)
    assert row.values[1:] == [
        [Image("a.png", b"bytes")],
        [0.0, 0.5, 1.0, 2.0],
        [1, 0],
        ["x", "y"],
    ]
    assert row.values[0] == [pytest.approx(3.3)]
    texts = ["3.3", "a.png", "2 points: (0, 0.5) (1, 2)", "1 0", "x / y"]
    assert list(map(shown, KINDS, row.values)) == texts
    assert (row.file, row.line) == ("a.tsv", 1)


def test_what_is_missing_shows_nothing():
    assert [shown(feature, []) for feature in KINDS] == [""] * len(KINDS)
