"""What Beam's workers do: raw examples of one file through the Transform graph, to another file.

TFX Transform would read and write with Beam, a row at a time in Python. TensorFlow takes a third of
the time, a file has the same bytes wherever it is made, and its rows keep their order.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from apache_beam.utils.shared import Shared
from tensorflow_transform import impl_helper
from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder

TEMPORARY = ".tmp"  # how the name of a file ends that is not whole
# A batch: more rows are no faster, and an image can have as many bytes as a thousand sentences.
_ROWS = 1024
_BYTES = 4 * 2**20
_LOOKED_AT = 64  # rows whose size is looked at
_BATCHES = 2  # that are transformed while another is written


@dataclass(frozen=True)
class Job:
    """A file of raw examples, and the one that its transformed examples go to."""

    raw: str
    transformed: str


class Transformer:
    """Transforms files; the graph is loaded once a process.

    Args:
        graph: the folder of the Transform graph.
    """

    def __init__(self, graph: str):
        self._graph = graph
        self._shared = Shared()

    def __call__(self, job: Job) -> None:
        """Writes the transformed file, whole or not at all.

        A runner may make two attempts at once: each has a temporary name of its own.
        """
        # The graph may need the module that tokenizes, which nothing else here imports.
        import tensorflow_text  # noqa: F401

        loaded = self._shared.acquire(lambda: _Loaded(self._graph))
        folder, name = os.path.split(job.transformed)
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}{TEMPORARY}")
        # Level 1 packs ids at three times the speed for a few more bytes.
        options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
        try:
            with tf.io.TFRecordWriter(temporary, options) as writer:
                for record in loaded.records(job.raw):
                    writer.write(record)
            tf.io.gfile.rename(temporary, job.transformed, overwrite=True)
        finally:
            if tf.io.gfile.exists(temporary):
                tf.io.gfile.remove(temporary)


class _Loaded:
    """A Transform graph, and what writes its features as tf.Examples."""

    def __init__(self, graph: str):
        output = tft.TFTransformOutput(graph)
        schema = output.transformed_metadata.schema
        raw, layer = output.raw_feature_spec(), output.transform_features_layer()

        # Traced here once, and not for every file; AutoGraph would find nothing to rewrite.
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def transform(records: tf.Tensor) -> dict[str, Any]:
            return layer(tf.io.parse_example(records, raw))

        self._layer = layer  # it has the tokenizers, which a graph alone does not keep
        self._transform = transform.get_concrete_function()
        self._converter = impl_helper.make_tensor_to_arrow_converter(schema)
        self._encoder = RecordBatchToExamplesEncoder(schema)

    def records(self, path: str) -> Iterator[bytes]:
        """The transformed examples of a file of raw ones, in their order."""
        rows = tf.data.TFRecordDataset(path, compression_type="GZIP")
        rows = rows.batch(at_once(rows))
        options = tf.data.Options()
        options.autotune.enabled = False  # whose thread wakes rarely: a short file waits for it
        batches = rows.map(self._transform, num_parallel_calls=_BATCHES, deterministic=True)
        for batch in batches.prefetch(_BATCHES).with_options(options):
            for record in self._encoder.encode(self._converter.convert(batch)):
                # The encoder's order of the features is another one in every process.
                yield tf.train.Example.FromString(record).SerializeToString(deterministic=True)


def at_once(rows: tf.data.Dataset) -> int:
    """How many of these rows make a batch, by the largest of the first ones."""
    sizes = [len(record) for record in rows.take(_LOOKED_AT).as_numpy_iterator()]
    return max(1, min(_ROWS, _BYTES // max([*sizes, 1])))


def jobs(raw: list[str], folder: str) -> list[Job]:
    """The files of a split, and where they go: named as TFX names them."""
    names = [f"transformed_examples-{i:05d}-of-{len(raw):05d}.gz" for i in range(len(raw))]
    return [Job(path, os.path.join(folder, name)) for path, name in zip(raw, names, strict=True)]
