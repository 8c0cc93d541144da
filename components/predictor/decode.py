"""Decodes a split with one model in a Beam pipeline, and joins the outputs to a table."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import apache_beam as beam
from apache_beam.utils.shared import Shared

from regard.components.common import prediction_table
from regard.components.common.prediction_table import ModelSummary
from regard.components.data.example_rows import (
    Position,
    parse_record,
    read_positioned_records,
)
from regard.components.predictor import batch_results
from regard.components.predictor.batch_plan import BatchPlan, PlannedShard
from regard.components.predictor.batch_results import BatchStats, ProgressScope
from regard.components.predictor.reference_outputs import ReferenceOutput
from regard.components.predictor.row_decoder import RowDecoder
from regard.components.predictor.row_noise import RowNoise
from regard.components.predictor.split_reader import row_length, to_row
from regard.core.features import Feature
from regard.serving import saved_model
from regard.serving.contract import Contract, SavedModelError, answer_kind, read_contract
from regard.serving.saved_model import ServedModel

# A row number, a serialized example and its position; None announces a batch.
Record = tuple[int, bytes, Position] | None


def read_shard(shard: PlannedShard) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file with their row numbers, keyed by batch.

    A worker processes batches in the order in which their keys first occur. So the first shard
    announces all batches, the longest rows first.
    """
    for batch in range(shard.announced_batches):
        yield batch, None
    records = zip(shard.rows, shard.batches, read_positioned_records(shard.path), strict=True)
    for row, batch, (position, record) in records:
        yield batch, (row, record, position)


class ModelDoFn(beam.DoFn):
    """Loads a model once per process, also with several threads.

    Args:
        load: loads the model.
        folder: the folder for results and errors, which every worker can write to.
    """

    def __init__(self, load: Callable[[], ServedModel], folder: Path):
        self._load, self._folder, self._shared = load, folder, Shared()

    def setup(self) -> None:
        """Load the model, or wait until another thread has loaded it.

        Raises:
            SavedModelError: the model does not fit its contract.
        """
        start = time.monotonic()
        with batch_results.record_failure(self._folder):
            self._model: ServedModel = self._shared.acquire(self._load)
        self._load_seconds = time.monotonic() - start
        self._worker, self._device = uuid.uuid4().hex, self._model.device


class PredictDoFn(ModelDoFn):
    """Runs a SavedModel on batches of records, and writes the outputs of each to a file.

    The model's detail signature is used.

    Args:
        model: the SavedModel's folder.
        features: the task's features.
        folder: the folder for the files, which every worker can write to.
        reference_outputs: further outputs for the references.
        skip_unavailable: whether to leave out reference outputs that the model cannot give.
        noise: changes the inputs; None for clean ones.
    """

    def __init__(
        self,
        model: Path,
        features: Sequence[Feature],
        folder: Path,
        reference_outputs: Sequence[ReferenceOutput],
        skip_unavailable: bool,
        noise: RowNoise | None = None,
    ):
        super().__init__(functools.partial(_load, model), folder)
        self._features = list(features)
        self._reference_outputs = list(reference_outputs)
        self._skip_unavailable, self._noise = skip_unavailable, noise

    def process(self, element: tuple[int, Iterable[Record]]) -> None:
        """Decode one batch.

        Raises:
            UserError: an input is too long, or the model has no such layer or head.
            SavedModelError: the model does not fit its contract.
        """
        batch, records = element
        with batch_results.record_failure(self._folder):
            parsed = [
                (number, to_row(parse_record(record, self._features, position), self._features))
                for number, record, position in filter(None, records)
            ]
            if self._noise is not None:
                parsed = [(number, self._noise(row, number)) for number, row in parsed]
            parsed.sort(key=lambda pair: (-row_length(pair[1]), pair[0]))
            rows = [row for _, row in parsed]
            decoder = RowDecoder(
                self._model, len(rows), self._reference_outputs, self._skip_unavailable
            )
            decoded = decoder.decode(rows)
            truncated = [
                prediction.truncated for prediction in decoded.predictions if prediction.truncated
            ]
            stats = BatchStats(
                rows=len(rows),
                seconds=decoded.seconds,
                worker=self._worker,
                load_seconds=self._load_seconds,
                device=self._device,
                truncated_rows=len(truncated),
                truncated_tokens=sum(truncated),
            )
            numbers = [number for number, _ in parsed]
            table = prediction_table.make_table(self._features, numbers, rows, decoded.predictions)
            batch_results.write_batch(self._folder, batch, table, stats)


def _load(path: Path) -> ServedModel:
    model = saved_model.load(path)
    model.signature(model.contract["detail"])
    return model


@dataclasses.dataclass(frozen=True)
class DecodeResult:
    """The model's contract, without reference outputs, and the statistics of each batch."""

    contract: Contract
    stats: Sequence[BatchStats]

    @property
    def device(self) -> str:
        """``CPU`` or ``GPU``, or both if the workers differ."""
        return ", ".join(sorted({batch.device for batch in self.stats})) or "CPU"

    def summary(self, path: Path) -> ModelSummary:
        """Return the speed of a model at a path."""
        load_seconds = max((batch.load_seconds for batch in self.stats), default=0.0)
        return {
            "path": str(path),
            "load_seconds": round(load_seconds, 3),
            "seconds": round(batch_results.decoding_seconds(self.stats), 3),
            "sentences_per_second": round(batch_results.rows_per_second(self.stats), 1),
        }


@dataclasses.dataclass(frozen=True)
class SplitDecoder:
    """Decodes the same rows with one model after another.

    Attributes:
        make_pipeline: a function that returns an empty Beam pipeline.
        plan: the rows in batches.
        features: the task's features.
        reference_outputs: further outputs for the references.
    """

    make_pipeline: Callable[[], beam.Pipeline]
    plan: BatchPlan
    features: Sequence[Feature]
    reference_outputs: Sequence[ReferenceOutput]

    @property
    def noun(self) -> str:
        """What the rows are called in messages."""
        inputs = [feature for feature in self.features if feature.role == "input"]
        return "sentences" if len(inputs) == 1 and inputs[0].kind.is_text else "rows"

    def decode(
        self,
        model: Path,
        table: Path,
        label: str,
        progress: tuple[float, float] = (0.0, 1.0),
        skip_unavailable: bool = False,
        noise: RowNoise | None = None,
    ) -> DecodeResult:
        """Run the detail signature of a SavedModel on every row, also on empty texts.

        Args:
            model: the SavedModel's folder.
            table: the file for the outputs in row order, written atomically.
            label: the model's display name.
            progress: the fractions of the node's progress at the start and the end.
            skip_unavailable: whether to leave out reference outputs that the model cannot give:
                attention of a missing layer, or of rows that are too long.
            noise: changes the inputs; None for clean ones.

        Raises:
            UserError: an input is too long, or the model has no such layer.
            SavedModelError: the model does not fit its contract or the task.
            Exception: any other error in a worker.
        """
        contract = self._read_contract(model)
        if not self.plan.rows:
            prediction_table.write(table, self.features, [], [])
            return DecodeResult(contract, [])
        # In the artifact's folder, which all workers see and which is removed with the artifact.
        folder = table.parent / f".parts-{table.stem}-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True)
        predict = PredictDoFn(
            model, self.features, folder, self.reference_outputs, skip_unavailable, noise
        )
        scope = ProgressScope(label, self.noun, self.plan.rows, *progress)
        try:
            with batch_results.report_progress(folder, scope):
                self._run(predict, folder)
            files = [
                [batch_results.batch_path(folder, batch) for batch in window]
                for window in self.plan.windows
            ]
            prediction_table.join(table, files)
            return DecodeResult(contract, list(batch_results.read_stats(folder, {}).values()))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, predict: PredictDoFn, folder: Path) -> None:
        shards = self.plan.shards
        with batch_results.raise_failure(folder), self.make_pipeline() as pipeline:
            inputs = pipeline | "Shards" >> beam.Create(shards, reshuffle=len(shards) > 1)
            batches = inputs | "Read" >> beam.FlatMap(read_shard) | "Batches" >> beam.GroupByKey()
            _ = batches | "Predict" >> beam.ParDo(predict)

    def _read_contract(self, model: Path) -> Contract:
        """Read the contract of a model, and check that it fits the rows."""
        if not (model / "saved_model.pb").is_file():
            raise SavedModelError(f"there is no model at {model}")
        contract = read_contract(model)
        inputs = [feature.name for feature in self.features if feature.role == "input"]
        for entry in contract["inputs"]:
            if entry["name"] not in inputs:
                available = ", ".join(inputs)
                raise SavedModelError(
                    f"the model needs the input {entry['name']}, but the rows have {available}"
                )
        tags = {tag for feature in self.features for tag in feature.tags}
        if missing := sorted(tags.difference(contract.get("tags", ()))):
            raise SavedModelError(f"the model has no tag {missing[0]}")
        (reference,) = (feature for feature in self.features if feature.role == "reference")
        expected = reference.kind
        if (kind := answer_kind(contract)) != expected:
            raise SavedModelError(
                f"the model's outputs are of kind {kind}, but the references are of kind {expected}"
            )
        return contract
