"""Requests that a server sends a model when it loads it, so that no user waits for the first.

TensorFlow Serving reads them from the model's own folder: a TFRecord file of ``PredictionLog``
(``tensorflow_serving/apis/prediction_log.proto``), at most 1,000, none of which may fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from serving.questions import Question, about, asked_of
from serving.saved_model import arrays

FILE = "assets.extra/tf_serving_warmup_requests"
# How many rows the requests have: as a server without batching is asked, and as one with it asks.
BATCHES = (1, 8, 32)


def write(
    path: str | os.PathLike[str], contract: Mapping[str, Any], questions: Sequence[Question]
) -> int:
    """Writes requests to every signature, of real rows and of several sizes.

    Args:
        path: the file.
        contract: the model's.
        questions: real rows; what is asked about their answers needs those that were kept.

    Returns:
        How many requests there are.
    """
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    count = 0
    with tf.io.TFRecordWriter(os.fspath(path)) as file:
        for signature, rows in _batches(contract, questions):
            log = prediction_log_pb2.PredictionLog()
            request = log.predict_log.request
            request.model_spec.signature_name = signature
            entries = contract["signatures"][signature]["inputs"]
            for name, array in arrays(entries, rows).items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(array))
            file.write(log.SerializeToString(deterministic=True))
            count += 1
    return count


def read(path: str | os.PathLike[str]) -> list[Any]:
    """The requests of a file, each a ``PredictRequest``.

    Raises:
        tensorflow.errors.DataLossError: it is no TFRecord file.
        ValueError: a record is no ``PredictionLog`` with a ``predict_log``.
    """
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorflow_serving.apis import prediction_log_pb2

    found = []
    for number, record in enumerate(tf.data.TFRecordDataset(os.fspath(path)).as_numpy_iterator()):
        try:
            log = prediction_log_pb2.PredictionLog.FromString(record)
        except DecodeError as error:
            raise ValueError(f"{os.fspath(path)}: record {number}: {error}") from None
        if log.WhichOneof("log_type") != "predict_log":
            kind = log.WhichOneof("log_type")
            raise ValueError(f"{os.fspath(path)}: record {number} is no predict_log, but {kind}")
        found.append(log.predict_log.request)
    return found


def _batches(
    contract: Mapping[str, Any], questions: Sequence[Question]
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Signatures, and the rows of one request to each."""
    kept = [question.kept for question in questions]
    for signature, meaning in contract["signatures"].items():
        asked: list[Mapping[str, Any]] = [
            one.inputs
            for one in about(
                asked_of(signature, list(questions), contract), kept, meaning["inputs"]
            )
        ]
        sizes = [size for size in BATCHES if size <= len(asked)]
        for size in sizes:
            yield signature, asked[:size]
