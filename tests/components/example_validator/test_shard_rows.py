import pytest
import tensorflow as tf

from regard.components.corpus_gen.example_writer import ExampleEncoder
from regard.components.data.images import Images
from regard.components.data.row_values import Image, format_values
from regard.components.example_validator.shard_rows import (
    CheckCounts,
    Shard,
    ShardRow,
    read_referenced_rows,
    read_shard,
    row_reference,
)
from regard.models.tasks.description import Feature
from tests.components.corpora import TRANSLATION, write_records


@pytest.fixture
def shard(tmp_path):
    rows = [
        {"source": [f"ü{i}"], "target": ["t"] * (i != 3), "file": ["a.en"], "line": i + 1}
        for i in range(5)
    ]
    return Shard(0, "train", write_records(tmp_path / "data.gz", rows))


def test_read_shard_in_batches(shard):
    rows = list(read_shard(shard.path, TRANSLATION, batch=2))
    assert rows == list(read_shard(shard.path, TRANSLATION))
    assert rows[4] == ShardRow([["ü4"], ["t"]], "a.en", 5)
    assert rows[3].values == [["ü3"], []]


def test_read_referenced_rows(shard):
    refs = {row_reference(0, 0), row_reference(0, 4)}
    rows = read_referenced_rows([shard], TRANSLATION, refs)
    assert {ref: row.line for ref, row in rows.items()} == {0: 1, 4: 5}
    assert rows[4] == ShardRow([["ü4"], ["t"]], "a.en", 5)


KINDS = [
    Feature("score", "number"),
    Feature("image", "image"),
    Feature("points", "points"),
    Feature("answer", "positions", role="reference"),
    Feature("caption", "text", role="reference", multiple=True),
]


def test_values_of_every_kind(tmp_path):
    encode = ExampleEncoder(KINDS, "a.tsv", Images(str(tmp_path)))
    (tmp_path / "a.png").write_bytes(b"bytes")
    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        writer.write(encode(1, [3.3, "a.png", [0.0, 0.5, 1.0, 2.0], [1, 0], ["x", "y"]]))
    (row,) = read_shard(path, KINDS)
    image = [Image("a.png", b"bytes")]
    assert row.values[1:] == [image, [0.0, 0.5, 1.0, 2.0], [1, 0], ["x", "y"]]
    assert row.values[0] == [pytest.approx(3.3)]
    texts = ["3.3", "a.png", "2 points: 0 0.5 1 2", "1 0", "x / y"]
    assert list(map(format_values, KINDS, row.values)) == texts
    assert (row.file, row.line) == ("a.tsv", 1)


def test_format_missing_values():
    assert [format_values(feature, []) for feature in KINDS] == [""] * len(KINDS)


def test_references_are_in_the_order_of_the_corpus():
    assert row_reference(0, 10**9) < row_reference(1, 0)


def counts_of(shard, rows):
    counts = CheckCounts(rows={shard: 10})
    for row in rows:
        counts.add("too_long", row_reference(shard, row))
    return counts


def test_total_in_any_order():
    parts = [counts_of(0, [7, 8]), counts_of(1, range(9)), counts_of(2, [])]
    total = CheckCounts.total(parts)
    assert total == CheckCounts.total(reversed(parts))
    assert total == CheckCounts.total([CheckCounts.total(parts[:2]), CheckCounts.total(parts[2:])])
    assert total.rows == {0: 10, 1: 10, 2: 10}
    assert total.counts == {"too_long": {0: 2, 1: 9}}


def test_first_rows_are_the_examples():
    total = CheckCounts.total([counts_of(1, range(9)), counts_of(0, [7, 8])])
    rows = [(0, 7), (0, 8), (1, 0), (1, 1), (1, 2)]
    assert total.examples["too_long"] == [(row_reference(*row), None) for row in rows]


def test_json():
    parts = [CheckCounts(capped=2, overlaps=b"\x00\xff"), CheckCounts(capped=3, overlaps=b"a")]
    total = CheckCounts.total([*parts, counts_of(0, [7])])
    parsed = CheckCounts.from_json(total.to_json())
    assert parsed == total
    assert (parsed.capped, parsed.overlaps) == (5, b"\x00\xffa")
