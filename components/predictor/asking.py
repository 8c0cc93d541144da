"""What Beam's workers do: read the rows of a split, and ask a model for a batch of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from components import predictions
from components.errors import UserError
from components.predictions import Row
from components.predictor import parts, rows
from components.predictor.likelihood import Likelihood
from components.predictor.looks import Looks
from components.predictor.plan import Shard
from models.tasks.features import Feature
from serving import saved_model
from serving.saved_model import Answer, ServedModel, SourceRefused

# What a model can be asked of an answer that it is given.
Given = Looks | Likelihood


def read(shard: Shard) -> Iterator[tuple[int, Any]]:
    """The records of a file with their rows' numbers, each under the number of its batch.

    One worker answers batches in the order in which their numbers first came up. So they are named
    before there is anything of them, the longest rows first.
    """
    for batch in range(shard.announced):
        yield batch, None
    numbers = zip(shard.rows, shard.batches, rows.records(shard.path), strict=True)
    for row, batch, record in numbers:
        yield batch, (row, record)


class Ask(beam.DoFn):
    """Asks a SavedModel for batches of records, and writes the answers to each as a part.

    The signature is the one that tells most. The model is loaded once a process, however many
    threads it has.

    Args:
        model: the folder with ``saved_model.pb``.
        features: those of the task.
        folder: where the parts go; every worker must be able to write there.
        given: what it is asked of the references besides.
        lenient: whether a model that cannot tell it of a batch leaves it out there.
    """

    def __init__(
        self,
        model: Path,
        features: Sequence[Feature],
        folder: Path,
        given: Sequence[Given],
        lenient: bool,
    ):
        self._path, self._features, self._folder = model, list(features), folder
        self._given, self._lenient = list(given), lenient
        self._shared = Shared()

    def setup(self) -> None:
        """Loads the model, or waits for another thread to have done so.

        Raises:
            SavedModelError: it is not what it should be.
        """
        began = time.monotonic()
        with parts.failing(self._folder):
            self._model: ServedModel = self._shared.acquire(lambda: _load(self._path))
        self._load_seconds = time.monotonic() - began
        self._worker, self._device = uuid.uuid4().hex, saved_model.device()

    def process(self, element: tuple[int, Iterable[tuple[int, bytes] | None]]) -> None:
        """Answers one batch.

        Raises:
            UserError: a row is longer than the model takes, or it has not the layer or head.
            SavedModelError: the model is not what it should be.
        """
        number, records = element
        with parts.failing(self._folder):
            found = [
                (row, rows.parse(record, self._features)) for row, record in filter(None, records)
            ]
            found.sort(key=lambda pair: (-rows.length(pair[1]), pair[0]))
            asked = [row for _, row in found]
            began = time.monotonic()
            answers = _ask(self._model, asked)
            seconds = time.monotonic() - began
            cut = [answer.cut for answer in answers if answer.cut]
            told = parts.Told(
                rows=len(answers),
                seconds=seconds,
                worker=self._worker,
                load_seconds=self._load_seconds,
                device=self._device,
                cut_rows=len(cut),
                cut_pieces=sum(cut),
            )
            for given in self._given:
                answers = self._beside(given, answers, asked)
            table = predictions.table(self._features, [row for row, _ in found], asked, answers)
            parts.write(self._folder, number, table, told)

    def _beside(self, given: Given, answers: list[Answer], asked: Sequence[Row]) -> list[Answer]:
        inputs = [row.inputs for row in asked]
        try:
            return given.beside(self._model, answers, inputs, [row.references[0] for row in asked])
        except UserError:
            if self._lenient:
                return answers
            raise


def _load(path: Path) -> ServedModel:
    model = saved_model.load(path)
    model.signature(model.contract["detail"])
    return model


def _ask(model: ServedModel, asked: Sequence[Row]) -> list[Answer]:
    """The answers; a row that is refused is named."""
    signature = model.contract["detail"]
    try:
        return model.ask(signature, [row.inputs for row in asked])
    except SourceRefused as error:
        refused = _refused(model, signature, asked)
        place = f"{refused.file}:{refused.line}: " if refused and refused.line else ""
        raise UserError(
            f"the test split cannot be decoded: {place}{error}",
            where="search.long_source",
            remedy="Raise search.max_source_length, or let long_source: truncate cut them.",
        ) from None


def _refused(model: ServedModel, signature: str, asked: Sequence[Row]) -> Row | None:
    """The first row that is refused on its own."""
    for row in asked:
        try:
            model.ask(signature, [row.inputs])
        except SourceRefused:
            return row
    return None
