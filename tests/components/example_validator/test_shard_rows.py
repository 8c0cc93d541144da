import pytest

from regard.components.data.example_rows import ExampleRow
from regard.components.example_validator.shard_rows import (
    CheckCounts,
    Shard,
    read_referenced_rows,
    row_reference,
)
from tests.components.corpora import TRANSLATION, write_records


@pytest.fixture
def shard(tmp_path):
    rows = [
        {"source": [f"ü{i}"], "target": ["t"] * (i != 3), "file": ["a.en"], "line": i + 1}
        for i in range(5)
    ]
    return Shard(0, "train", write_records(tmp_path / "data.gz", rows))


def test_read_referenced_rows(shard):
    refs = {row_reference(0, 0), row_reference(0, 4)}
    rows = read_referenced_rows([shard], TRANSLATION, refs)
    assert {ref: row.line for ref, row in rows.items()} == {0: 1, 4: 5}
    assert rows[4] == ExampleRow([["ü4"], ["t"]], "a.en", 5)


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
