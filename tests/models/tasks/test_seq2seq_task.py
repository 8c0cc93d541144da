"""Several texts of a row, one after another and apart again."""

import pytest
import tensorflow as tf

from regard.models import tasks
from regard.models.tasks.base import flat_values

TASK = tasks.get("translation")


class Letters:
    """A tokenizer of letters."""

    def tokenize(self, texts):
        return tf.strings.unicode_decode(texts, "UTF-8")


RAGGED = tf.ragged.constant([["abc", "de"], ["f"], ["", "gh"]])
DENSE = tf.constant([["abc", "de"], ["f", ""]])


@pytest.mark.parametrize("column", [RAGGED.to_sparse(), DENSE])
def test_the_pieces_of_all_texts_of_a_row(column):
    result = TASK.target_features({"target": column}, {"target": Letters()})
    rows = RAGGED.to_list() if isinstance(column, tf.SparseTensor) else DENSE.numpy().tolist()
    texts = [[text.decode() for text in row] for row in rows]
    assert result["target_ids"].to_list() == [[ord(c) for c in "".join(row)] for row in texts]
    assert result["target_lengths"].to_list() == [[len(text) for text in row] for row in texts]


def test_a_row_once_for_each_of_its_texts():
    row = {
        "source_ids": tf.constant([7, 8, 9], tf.int64),
        "target_ids": tf.constant([1, 2, 3, 4], tf.int64),
        "target_lengths": tf.constant([3, 0, 1], tf.int64),
        "image": tf.constant("png"),
    }
    rows = list(tf.data.Dataset.from_tensor_slices(TASK.expand(row)))
    assert [r["target_ids"].numpy().tolist() for r in rows] == [[1, 2, 3], [], [4]]
    assert all(r["source_ids"].numpy().tolist() == [7, 8, 9] for r in rows)
    assert all(r["image"].numpy() == b"png" for r in rows)


def test_one_value_a_row():
    dense, sparse = tf.constant([["a"], ["b"]]), tf.sparse.from_dense([["a"], ["b"]])
    for column in (dense, sparse, tf.constant(["a", "b"])):
        assert flat_values(column).numpy().tolist() == [b"a", b"b"]
