"""The Transform graph: its preprocessing function, and its application to files by Beam's workers.

TFX Transform would read and write tf.Examples with Beam, one row at a time in Python. TensorFlow
and Arrow take a fraction of the time. A file has the same bytes wherever it is written, and its
rows keep their order.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import tensorflow as tf
import tensorflow_text as text
import tensorflow_transform as tft
from apache_beam.utils.shared import Shared
from tensorflow_transform import impl_helper

from regard.components.common import row_files
from regard.core.errors import UserError
from regard.models import tasks
from regard.models.tasks.description import Description
from regard.models.tasks.preprocessing import STORED_TYPES

# The keys of custom_config: those of the pipeline, and the one that the executor adds.
TASK = "task"
SETTINGS = "settings"
TOKENIZER = "tokenizer"

# Larger batches are no faster, and an image can have as many bytes as a thousand sentences.
_MAX_BATCH_ROWS = 1024
_MAX_BATCH_BYTES = 4 * 2**20
_SAMPLE_ROWS = 64
_PARALLEL_BATCHES = 2  # transformed while another is written


def preprocessing_fn(inputs: Mapping[str, Any], custom_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a batch's transformed features and training lengths; TFX Transform calls it.

    Raises:
        UserError: a feature of the task is missing, or has another type.
    """
    folder = custom_config[TOKENIZER]
    tokenizers = load_tokenizers(folder) if folder else {}
    preprocessing = tasks.get_preprocessing(custom_config[TASK])
    _check_features(inputs, preprocessing.description)
    section = preprocessing.description.preprocessing_section
    settings = section.model_validate(custom_config[SETTINGS])
    features = preprocessing.transform(inputs, tokenizers, settings)
    return {**features, row_files.LENGTHS: tf.cast(preprocessing.lengths(features), tf.int64)}


def _check_features(inputs: Mapping[str, Any], description: Description) -> None:
    """Raise a UserError unless a batch has the features that a training reads, with their types."""
    for feature in description.features:
        if feature.name not in description.trained_features:
            continue
        if feature.name not in inputs:
            message = f"The schema has no feature {feature.name!r}; it has {', '.join(inputs)}."
            remedy = f"The task {description.name} needs {', '.join(description.trained_features)}."
            raise UserError(message, feature.name, remedy)
        kind, expected = inputs[feature.name].dtype, STORED_TYPES[feature.kind.stored_list]
        if kind != expected:
            message = f"The feature {feature.name!r} is of {kind.name}, not of {expected.name}."
            raise UserError(message, feature.name, "Change its type in the data or in the schema.")


def load_tokenizers(folder: str) -> dict[str, text.SentencepieceTokenizer]:
    """Load the tokenizers of a Tokenizer artifact by feature, tracked for the saved graph.

    They add neither BOS nor EOS, which the model adds.
    """
    with tf.io.gfile.GFile(os.path.join(folder, "tokenizer.json")) as file:
        features = json.load(file)["features"]
    return {
        feature: _tokenizer(feature, os.path.join(folder, entry["file"]))
        for feature, entry in features.items()
    }


def _tokenizer(feature: str, path: str) -> text.SentencepieceTokenizer:
    with tf.io.gfile.GFile(path, "rb") as file:
        proto = file.read()
    name = f"{feature}_tokenizer"
    # Without a unique name a second tokenizer silently becomes the first one when the graph is
    # saved and loaded.
    return tft.make_and_track_object(
        lambda: text.SentencepieceTokenizer(proto, out_type=tf.int32, name=name), name=name
    )


def file_pairs(raw: list[str], folder: str) -> list[tuple[str, str]]:
    """Return the files of a split with their transformed files, named as TFX names them."""
    names = [f"transformed_examples-{i:05d}-of-{len(raw):05d}.arrow" for i in range(len(raw))]
    return [(path, os.path.join(folder, name)) for path, name in zip(raw, names, strict=True)]


class FileTransformer:
    """Transforms files; each process loads the graph once.

    Args:
        graph: the folder of the Transform graph.
    """

    def __init__(self, graph: str):
        self._graph = graph
        self._shared = Shared()

    def __call__(self, raw: str, transformed: str) -> None:
        """Write the transformed rows of a file; a runner may make two attempts at once."""
        graph = self._shared.acquire(lambda: _LoadedGraph(self._graph))
        row_files.write_rows(transformed, graph.schema, graph.transform_file(raw))


class _LoadedGraph:
    """A Transform graph, and a converter of its features to columns.

    Attributes:
        schema: the schema of the columns.
    """

    def __init__(self, graph: str):
        output = tft.TFTransformOutput(graph)
        schema = output.transformed_metadata.schema
        raw, layer = output.raw_feature_spec(), output.transform_features_layer()

        # Traced once here, not for every file; AutoGraph would find nothing to rewrite.
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def transform(records: tf.Tensor) -> dict[str, Any]:
            return layer(tf.io.parse_example(records, raw))

        self._layer = layer  # owns the tokenizers, which the traced graph does not keep alive
        self._transform = transform.get_concrete_function()
        self._converter = impl_helper.make_tensor_to_arrow_converter(schema)
        self.schema = self._converter.arrow_schema()

    def transform_file(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yield the transformed rows of a file in their order."""
        rows = tf.data.TFRecordDataset(path, compression_type="GZIP")
        rows = rows.batch(batch_rows(rows))
        options = tf.data.Options()
        options.autotune.enabled = False  # its thread wakes rarely: a short file waits for it
        batches = rows.map(
            self._transform, num_parallel_calls=_PARALLEL_BATCHES, deterministic=True
        )
        for batch in batches.prefetch(_PARALLEL_BATCHES).with_options(options):
            yield self._converter.convert(batch)


def batch_rows(rows: tf.data.Dataset) -> int:
    """Return the rows of a batch, limited by the bytes of the largest of the first rows."""
    sizes = [len(record) for record in rows.take(_SAMPLE_ROWS).as_numpy_iterator()]
    return max(1, min(_MAX_BATCH_ROWS, _MAX_BATCH_BYTES // max([*sizes, 1])))
