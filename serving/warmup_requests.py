"""Warm-up requests, which a server runs when it loads a model.

TensorFlow Serving reads them from the model's folder: a TFRecord file of ``PredictionLog``
(``tensorflow_serving/apis/prediction_log.proto``) with at most 1,000 records.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from regard.core.regular_files import open_regular
from regard.serving.check_inputs import CheckRow, rows_for_signature
from regard.serving.checkpoint_index import masked_checksum
from regard.serving.contract import Contract
from regard.serving.protobuf import message_class, write_tensor
from regard.serving.saved_model import batch_inputs

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
    records = []
    for signature, entry in contract["signatures"].items():
        expected = [row.expected for row in rows]
        inputs = [row.inputs for row in rows_for_signature(signature, rows, expected, contract)]
        for size in (size for size in BATCH_SIZES if size <= len(inputs)):
            log = message_class("PredictionLog")()
            request = log.predict_log.request
            request.model_spec.signature_name = signature
            for name, array in batch_inputs(entry["inputs"], inputs[:size]).items():
                write_tensor(request.inputs.add(key=name).value, array)
            records.append(log.SerializeToString(deterministic=True))
    with open(path, "wb") as file:
        for record in records:
            header = len(record).to_bytes(8, "little")
            file.write(header + _checksum(header) + record + _checksum(record))
    return len(records)


def read(path: str | os.PathLike[str]) -> list[Any]:
    """Return the requests of a file, each a ``PredictRequest``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a TFRecord file, or a record is not a ``PredictionLog`` with a
            ``predict_log``.
    """
    return list(iterate(path))


def iterate(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield the requests of a file; see `read`."""
    from google.protobuf.message import DecodeError

    for number, record in enumerate(_read_records(path)):
        try:
            log = message_class("PredictionLog").FromString(record)
        except DecodeError as error:
            raise ValueError(f"{os.fspath(path)}: record {number}: {error}") from None
        if not log.HasField("predict_log"):
            raise ValueError(f"{os.fspath(path)}: record {number} is not a predict_log")
        yield log.predict_log.request


def _read_records(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the records of a TFRecord file: the size, its checksum, the bytes, their checksum."""
    with os.fdopen(open_regular(path), "rb") as file:
        total = os.fstat(file.fileno()).st_size
        while header := file.read(12):
            size = int.from_bytes(header[:8], "little")
            is_valid = header[8:] == _checksum(header[:8]) and size <= total
            record = file.read(size) if is_valid else b""
            if not is_valid or len(record) != size or file.read(4) != _checksum(record):
                raise ValueError(f"{os.fspath(path)} is not a TFRecord file, or is damaged.")
            yield record


def _checksum(content: bytes) -> bytes:
    return masked_checksum(content).to_bytes(4, "little")
