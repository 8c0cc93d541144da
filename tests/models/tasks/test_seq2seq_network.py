"""Several texts of a row, one after another and apart again."""

import numpy as np
import pytest
import tensorflow as tf

from regard.models import tasks
from regard.models.vocabulary import EOS
from tests.models.tasks.task_parts import as_rows

PREPROCESSING, NETWORK = tasks.get_preprocessing("translation"), tasks.get_network("translation")


class Letters:
    """A tokenizer of letters."""

    def tokenize(self, texts):
        return tf.strings.unicode_decode(texts, "UTF-8")


RAGGED = tf.ragged.constant([["abc", "de"], ["f"], ["", "gh"]])
DENSE = tf.constant([["abc", "de"], ["f", ""]])


@pytest.mark.parametrize("column", [RAGGED.to_sparse(), DENSE])
def test_the_pieces_of_all_texts_of_a_row(column):
    result = PREPROCESSING.target_features({"target": column}, {"target": Letters()})
    rows = RAGGED.to_list() if isinstance(column, tf.SparseTensor) else DENSE.numpy().tolist()
    texts = [[text.decode() for text in row] for row in rows]
    assert result["target_ids"].to_list() == [[ord(c) for c in "".join(row)] for row in texts]
    assert result["target_lengths"].to_list() == [[len(text) for text in row] for row in texts]


ROWS = {
    "source_ids": tf.ragged.constant([[7, 8, 9, 7, 8], [7], []], tf.int64),
    "target_ids": tf.ragged.constant([[1, 2, 3, 4], [], [5, 6]], tf.int64),
    "target_lengths": tf.ragged.constant([[3, 0, 1], [], [2]], tf.int64),
}


def test_a_training_row_for_each_text():
    assert PREPROCESSING.lengths(ROWS).to_list() == [[6, 0, 6], [], [0]]  # with EOS
    assert PREPROCESSING.text_lengths(ROWS).to_list() == [[4, 0, 2], [], [3]]


def test_training_rows_have_the_text_of_their_number():
    repeated = {name: tf.gather(column, [2, 0, 0, 0]) for name, column in ROWS.items()}
    selected = NETWORK.select_references(as_rows(repeated), np.array([0, 2, 1, 0]))
    assert set(selected) == {"source_ids", "target_ids"}
    texts = [selected["target_ids"][row].tolist() for row in range(4)]
    assert texts == [[5, 6], [4], [], [1, 2, 3]]
    inputs = NETWORK.model_inputs(selected)
    assert inputs["target"].tolist() == [
        [5, 6, EOS, 0],
        [4, EOS, 0, 0],
        [EOS, 0, 0, 0],
        [1, 2, 3, EOS],
    ]
    assert inputs["source"][1].tolist() == [7, 8, 9, 7, 8, EOS]
    assert {array.dtype for array in inputs.values()} == {np.dtype(np.int32)}
