"""Transformed rows as a data set."""

import pytest
import tensorflow as tf
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io

from regard.components import tf_dataset
from regard.components.common.row_files import LENGTHS
from regard.core.errors import UserError
from tests.components.trainer.pairs import write_pairs

COLUMNS = ("source_ids", "target_ids", "target_lengths", LENGTHS)
PAIRS = [([5, 6], [7]), ([4], [8, 9, 4]), ([], [5]), ([5, 5, 5], [6, 6])]


def write_graph(folder, columns=COLUMNS):
    """The part of a Transform graph that describes transformed rows."""
    spec = {name: tf.io.VarLenFeature(tf.int64) for name in columns}
    metadata = dataset_metadata.DatasetMetadata.from_feature_spec(spec)
    metadata_io.write_metadata(metadata, str(folder / "transformed_metadata"))
    return str(folder)


@pytest.fixture
def rows(tmp_path):
    """The pattern of the files of a split, as TFX's Trainer gives it."""
    folder = tmp_path / "Split-train"
    folder.mkdir()
    for number, part in enumerate((PAIRS[:2], PAIRS[2:])):
        write_pairs(folder / f"transformed_examples-{number:05d}-of-00002.arrow", part)
    return [str(folder / "*")]


def test_padded_batches_of_the_complete_rows(rows, tmp_path):
    dataset = tf_dataset(rows, write_graph(tmp_path), 2)
    first, second = dataset.as_numpy_iterator()
    assert first["source_ids"].tolist() == [[5, 6], [4, 0]]
    assert first["target_ids"].tolist() == [[7, 0, 0], [8, 9, 4]]
    assert first["target_lengths"].tolist() == [[1], [3]]
    assert second["source_ids"].tolist() == [[5, 5, 5]]
    assert {tensor.dtype.name for tensor in first.values()} == {"int32"}
    assert set(first) == {"source_ids", "target_ids", "target_lengths"}
    assert dataset.cardinality().numpy() == 2


def test_each_epoch_has_an_order_of_its_own(rows, tmp_path):
    graph = write_graph(tmp_path)

    def epochs(seed):
        dataset = tf_dataset(rows, graph, 1, shuffle=True, seed=seed)
        return [
            [batch["source_ids"].tolist()[0] for batch in dataset.as_numpy_iterator()]
            for _ in range(8)
        ]

    orders = epochs(seed=1)
    assert all(sorted(order) == [[4], [5, 5, 5], [5, 6]] for order in orders)
    assert len({str(order) for order in orders}) > 1
    assert epochs(seed=1) == orders
    assert epochs(seed=2) != orders


def test_rows_of_another_graph_are_an_error(rows, tmp_path):
    with pytest.raises(UserError, match="not points"):
        tf_dataset(rows, write_graph(tmp_path, ["points", LENGTHS]), 2)


def test_a_split_without_a_complete_row_is_an_error(tmp_path):
    folder = tmp_path / "Split-eval"
    folder.mkdir()
    write_pairs(folder / "transformed_examples-00000-of-00001.arrow", [([], [5])])
    with pytest.raises(UserError, match="No transformed row is complete"):
        tf_dataset([str(folder / "*")], write_graph(tmp_path), 2)
