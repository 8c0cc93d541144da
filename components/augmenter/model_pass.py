"""A pass of a published model over examples; what a killed run has finished is not repeated."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam

from regard.components.common.code_digest import code_digest
from regard.components.data.example_rows import parse_record, read_records
from regard.components.predictor import batch_results
from regard.components.predictor.batch_results import BatchStats, ProgressScope
from regard.components.predictor.decode import ModelDoFn
from regard.components.settings.trainer import StartingModel
from regard.core.characters import is_blank
from regard.core.errors import DataError
from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.models.settings.search import SamplingSearchConfig, SearchLimits
from regard.models.tags import add_tag, find_tag
from regard.serving import saved_model
from regard.serving.contract import DEFAULT_SIGNATURE
from regard.serving.saved_model import (
    InputLengthError,
    InputRow,
    Model,
    Prediction,
    ServedModel,
)

NODE = "Augmenter"
PART_ROWS = 1024  # the rows that a killed worker computes again, at most


@dataclasses.dataclass(frozen=True)
class Part:
    """Consecutive records of a file: the first one, their number, and the part's own number."""

    number: int
    path: str
    start: int
    rows: int


@dataclasses.dataclass(frozen=True)
class ModelPass:
    """What a model computes for each row: an output, or the cross-entropy of a given one.

    Attributes:
        model: the model.
        inputs: the feature that each input of the signature receives.
        is_score: whether the cross-entropy of a given output is computed.
        seed: the seed of an output that is sampled; None: the model's own search.
        tag: the tag that begins the first input of every row; None: see ``tag_feature``.
        tag_feature: the feature with the tag of each row; None: rows without a tag.
    """

    model: StartingModel
    inputs: Mapping[str, str]
    is_score: bool = False
    seed: int | None = None
    tag: str | None = None
    tag_feature: str | None = None

    @property
    def label(self) -> str:
        """The name of the model for messages, with the tag that it reads."""
        tags = "the tags of the rows" if self.tag_feature else f"the tag {self.tag}"
        has_tags = self.tag_feature or self.tag
        return f"{self.model.model} with {tags}" if has_tags else self.model.model

    @property
    def features(self) -> list[Feature]:
        """The features of an example that the pass reads."""
        names = [*self.inputs.values(), *([self.tag_feature] if self.tag_feature else [])]
        return [Feature(name, TEXT) for name in names]

    def row_inputs(self, values: Sequence[str], tags: Sequence[str]) -> dict[str, str]:
        """Return the inputs of the signature for a row.

        A text that contains one of the tags becomes blank, so that it has no output.

        Args:
            values: the values of ``features``.
            tags: the tags of the model.
        """
        inputs = dict(zip(self.inputs, values, strict=False))
        tag = values[-1] if self.tag_feature else self.tag
        if not tag:
            return inputs
        name, text = next(iter(inputs.items()))
        return {**inputs, name: "" if find_tag(text, tags) else add_tag(tag, text)}

    def load(self) -> ServedModel:
        """Load the model, or build it again with the search that samples."""
        if self.seed is None:
            return saved_model.load(self.model.path)
        from regard.components.trainer.export import InMemoryModel, RebuiltModel

        rebuilt: Any = RebuiltModel(Path(self.model.path), self.model.model)
        limits = rebuilt.config.search.model_dump(include=set(SearchLimits.model_fields))
        return InMemoryModel(rebuilt.served(SamplingSearchConfig(seed=self.seed, **limits)))

    def compute(self, model: Model, rows: Sequence[InputRow]) -> list[Any]:
        """Return a text or a cross-entropy per token in nats for each row of a batch.

        There is no text (None) if the model has truncated the row or its output is blank; the
        cross-entropy is infinite if the model gives no score.

        Raises:
            UserError: the model refuses a row as too long.
        """
        try:
            predictions = model.predict("score" if self.is_score else DEFAULT_SIGNATURE, rows)
        except InputLengthError as error:
            remedy = "Drop long rows, or use a model with search.long_source: truncate."
            longest = max((text for row in rows for text in row.values()), key=len)
            message = f"{error}; the longest text of the batch begins with {longest[:60]!r}."
            raise DataError(message, self.model.model, remedy) from None
        if self.is_score:
            return [_cross_entropy(prediction) for prediction in predictions]
        return [_usable_text(prediction) for prediction in predictions]


def _cross_entropy(prediction: Prediction) -> float:
    log_probability = prediction.outputs["score"] / prediction.outputs["target_length"]
    return math.inf if math.isnan(log_probability) else -log_probability


def _usable_text(prediction: Prediction) -> str | None:
    if prediction.truncated or is_blank(prediction.hypothesis):
        return None
    return prediction.hypothesis


class PassDoFn(ModelDoFn):
    """Runs a model on parts of the examples, and writes the results of each to a file.

    Args:
        model_pass: the pass to compute.
        batch_size: the maximum number of rows in a batch.
        folder: the folder for the files, which every worker can write to.
    """

    def __init__(self, model_pass: ModelPass, batch_size: int, folder: Path):
        super().__init__(model_pass.load, folder)
        self._pass, self._batch_size = model_pass, batch_size

    def process(self, part: Part) -> None:
        """Compute the results of one part, in batches of rows of similar length."""
        import pyarrow as pa

        start = time.monotonic()
        with batch_results.record_failure(self._folder):
            features, tags = self._pass.features, self._model.contract.get("tags", ())
            records = itertools.islice(read_records(part.path), part.start, part.start + part.rows)
            values = (parse_record(record, features).values for record in records)
            rows = [self._pass.row_inputs(["".join(x) for x in row], tags) for row in values]
            order = sorted(range(len(rows)), key=lambda row: -sum(map(len, rows[row].values())))
            results: dict[int, Any] = {}
            for first in range(0, len(order), self._batch_size):
                batch = order[first : first + self._batch_size]
                computed = self._pass.compute(self._model, [rows[row] for row in batch])
                results.update(zip(batch, computed, strict=True))
            table = pa.table({"result": [results[row] for row in range(part.rows)]})
            stats = BatchStats(
                rows=part.rows,
                seconds=time.monotonic() - start,
                worker=self._worker,
                load_seconds=self._load_seconds,
                device=self._device,
                truncated_rows=0,
                truncated_tokens=0,
            )
            batch_results.write_batch(self._folder, part.number, table, stats)


@dataclasses.dataclass(frozen=True)
class StoredResults:
    """The results of all records in their order, which are read from files in each iteration."""

    files: Sequence[Path]

    def __iter__(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        for path in self.files:
            with pq.ParquetFile(path) as file:
                yield from file.read().column("result").to_pylist()


def run_pass(
    make_pipeline: Callable[[], beam.Pipeline],
    root: Path,
    batch_size: int,
    model_pass: ModelPass,
    paths: Sequence[str],
) -> StoredResults:
    """Return the results of the records of examples; parts that are stored are not computed.

    Args:
        make_pipeline: a function that returns an empty Beam pipeline.
        root: a folder that outlives the run, with a folder for each model, data and code.
        batch_size: the maximum number of rows in a batch.
        model_pass: the pass to compute.
        paths: the files.

    Raises:
        UserError: the model refuses a row as too long.
        SavedModelError: the model does not fit its contract.
        Exception: any other error in a worker.
    """
    parts, records = _plan_parts(paths)
    code = code_digest("regard.components.augmenter.model_pass")
    settings = dataclasses.asdict(model_pass) | {"model": model_pass.model.digest}
    key = json.dumps([code, PART_ROWS, records, settings])
    folder = root / hashlib.sha256(key.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    files = [batch_results.batch_path(folder, part.number) for part in parts]
    missing = [part for part, file in zip(parts, files, strict=True) if not _is_stored(file)]
    rows = sum(part.rows for part in parts)
    scope = ProgressScope(model_pass.model.model, "rows", rows, node=NODE)
    progress = batch_results.report_progress(folder, scope)
    with batch_results.raise_failure(folder), progress, make_pipeline() as pipeline:
        compute = PassDoFn(model_pass, batch_size, folder)
        _ = pipeline | beam.Create(missing) | beam.ParDo(compute)
    return StoredResults(files)


def _is_stored(file: Path) -> bool:
    """Return whether a part is stored; a damaged file is removed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.read_table(file, page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        file.unlink(missing_ok=True)
        return False
    return True


def _plan_parts(paths: Sequence[str]) -> tuple[list[Part], str]:
    """Return the parts of files, and a digest of their records."""
    parts: list[Part] = []
    digest = hashlib.sha256()
    for path in paths:
        count = 0
        for record in read_records(path):
            digest.update(hashlib.sha256(record).digest())
            count += 1
        for start in range(0, count, PART_ROWS):
            parts.append(Part(len(parts), path, start, min(PART_ROWS, count - start)))
    return parts, digest.hexdigest()
