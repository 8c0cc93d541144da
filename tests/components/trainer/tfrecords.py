"""Transformed examples as Preprocess writes them, without TFX."""

from pathlib import Path

import tensorflow as tf

FEATURES = ("source_ids", "target_ids", "target_lengths")
SPEC = {name: tf.io.RaggedFeature(tf.int64) for name in FEATURES}


def write_tfrecords(path: Path, pairs: list[tuple[list[int], list[int]]]) -> str:
    """Write pairs of token ids to a file, and return its path."""
    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for pair in pairs:
            columns = zip(SPEC, (*pair, [len(pair[1])]), strict=True)
            feature = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
                for name, ids in columns
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    return str(path)
