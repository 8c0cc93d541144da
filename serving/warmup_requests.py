"""Warm-up requests, which a server runs when it loads a model.

TensorFlow Serving reads them from the model's folder: a TFRecord file of ``PredictionLog``
(``tensorflow_serving/apis/prediction_log.proto``) with at most 1,000 records.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from regard.serving.check_inputs import CheckRow, rows_for_signature
from regard.serving.contract import Contract
from regard.serving.saved_model import batch_inputs

FILE = "assets.extra/tf_serving_warmup_requests"
BATCH_SIZES = (1, 8, 32)


def write(path: str | os.PathLike[str], contract: Contract, rows: Sequence[CheckRow]) -> int:
    """Write requests to every signature, in batches of several sizes.

    Args:
        path: the file.
        contract: the model's contract.
        rows: real rows with expected outputs, which some signatures take as inputs.

    Returns:
        The number of requests.
    """
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    count = 0
    with tf.io.TFRecordWriter(os.fspath(path)) as file:
        for signature, entry in contract["signatures"].items():
            expected = [row.expected for row in rows]
            inputs = [row.inputs for row in rows_for_signature(signature, rows, expected, contract)]
            for size in (size for size in BATCH_SIZES if size <= len(inputs)):
                log = prediction_log_pb2.PredictionLog()
                request = log.predict_log.request
                request.model_spec.signature_name = signature
                for name, array in batch_inputs(entry["inputs"], inputs[:size]).items():
                    request.inputs[name].CopyFrom(tf.make_tensor_proto(array))
                file.write(log.SerializeToString(deterministic=True))
                count += 1
    return count


def read(path: str | os.PathLike[str]) -> list[Any]:
    """Return the requests of a file, each a ``PredictRequest``.

    Raises:
        tensorflow.errors.DataLossError: the file is not a TFRecord file.
        ValueError: a record is not a ``PredictionLog`` with a ``predict_log``.
    """
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorflow_serving.apis import prediction_log_pb2

    requests = []
    for number, record in enumerate(tf.data.TFRecordDataset(os.fspath(path)).as_numpy_iterator()):
        try:
            log = prediction_log_pb2.PredictionLog.FromString(record)
        except DecodeError as error:
            raise ValueError(f"{os.fspath(path)}: record {number}: {error}") from None
        if (kind := log.WhichOneof("log_type")) != "predict_log":
            raise ValueError(f"{os.fspath(path)}: record {number} is a {kind}, not a predict_log")
        requests.append(log.predict_log.request)
    return requests
