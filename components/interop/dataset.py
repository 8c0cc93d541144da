"""The rows that Preprocess has transformed, as a data set for a ``run_fn`` of the user's own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from regard.components.common.artifact_files import shards_of
from regard.components.common.row_files import LENGTHS, RowFiles
from regard.core.errors import DataError, UserError
from regard.models.vocabulary import PAD


def tf_dataset(
    files: Sequence[str],
    transform_graph: str | os.PathLike[str],
    batch_size: int,
    shuffle: bool = False,
    seed: int = 0,
) -> tf.data.Dataset:
    """Return the transformed rows of a split as padded batches.

    Rows without a complete pair of input and reference are left out, such as those with an empty
    side. The rows stay in memory maps of the files.

    Args:
        files: ``fn_args.train_files`` or ``fn_args.eval_files`` of TFX's Trainer: patterns such as
            ``…/Split-train/*``.
        transform_graph: the folder of the Transform graph, ``fn_args.transform_graph_path``.
        batch_size: the number of rows in a batch; the last batch may be smaller.
        shuffle: whether each epoch has an order of its own; otherwise it is that of the files.
        seed: the seed of the orders.

    Returns:
        A finite data set of dictionaries, one epoch long, with a tensor ``[batch, longest]`` for
        each column: integers as int32, numbers as float32, padded with 0, the id of the padding.
        ``<feature>_ids`` are token ids without BOS and EOS; of several texts, one text after the
        other, with their lengths in ``<feature>_lengths`` ``[batch, texts]``.

    Raises:
        UserError: a file is missing or damaged, or belongs to another graph; or no row is complete.
    """
    rows = RowFiles(shards_of(files))
    numbers = rows.complete_rows()
    if not len(numbers):
        message = "No transformed row is complete."
        raise DataError(message, ", ".join(files), "Add rows in which no side is empty.")
    spec = tft.TFTransformOutput(os.fspath(transform_graph)).transformed_feature_spec()
    types = {
        name: tf.int32 if feature.dtype.is_integer else tf.float32
        for name, feature in sorted(spec.items())
        if name != LENGTHS
    }
    if types.keys() != (columns := set(rows.column_names)):
        message = f"The rows have the columns {', '.join(sorted(columns))}, not {', '.join(types)}."
        remedy = "Use the rows and the graph of the same Preprocess."
        raise UserError(message, os.fspath(transform_graph), remedy)
    epochs = itertools.count()

    def read() -> Iterator[dict[str, np.ndarray]]:
        order = numbers
        if shuffle:
            order = np.random.default_rng([seed, next(epochs)]).permutation(numbers)
        for start in range(0, len(order), batch_size):
            batch, _ = rows.read(order[start : start + batch_size])
            yield {name: batch[name].to_dense(PAD) for name in types}

    signature = {name: tf.TensorSpec([None, None], kind) for name, kind in types.items()}
    batches = tf.data.Dataset.from_generator(read, output_signature=signature)
    count = -(-len(numbers) // batch_size)
    return batches.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)
