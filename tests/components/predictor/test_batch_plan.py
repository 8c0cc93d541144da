from pathlib import Path

from regard.components.common.artifact_files import split_shards
from regard.components.predictor import batch_plan
from tests import fake_models


def split(tmp_path: Path, *shards) -> str:
    return str(Path(fake_models.examples(tmp_path, shards).uri, "Split-test"))


def row(line: int, length: int) -> dict:
    return {"source": "s" * length, "target": "t", "file": "f", "line": line}


def test_the_longest_rows_are_in_the_first_batch(tmp_path):
    """Lines 3, 1 in one file and 5, 2, 4 in the other; the longest are 4 and 1."""
    folder = split(tmp_path, [row(3, 2), row(1, 7)], [row(5, 1), row(2, 2), row(4, 9)])
    plan = batch_plan.plan_batches(folder, fake_models.FEATURES, batch_size=2)
    assert (plan.rows, plan.windows) == (5, [[0, 1, 2]])
    first, second = plan.shards
    assert [shard.path for shard in plan.shards] == split_shards(folder)
    assert (first.rows, first.batches) == ([2, 0], [1, 0])
    assert (second.rows, second.batches) == ([4, 1, 3], [2, 1, 0])
    assert (first.announced_batches, second.announced_batches) == (3, 0)


def test_an_empty_split_has_no_batches(tmp_path):
    plan = batch_plan.plan_batches(split(tmp_path, []), fake_models.FEATURES, batch_size=2)
    assert (plan.rows, plan.windows) == (0, [])
