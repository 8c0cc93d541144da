"""Decodes the test split with one model, as a Beam pipeline whose answers become one table."""

from __future__ import annotations

import dataclasses
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from components import predictions
from components.predictor import asking, parts
from components.predictor.parts import Told
from components.predictor.plan import Plan
from components.predictor.watching import seconds, speed, watching
from models.tasks.features import Feature
from serving.saved_model import SavedModelError, device, read_contract


@dataclasses.dataclass(frozen=True)
class Decoded:
    """The model's contract, and how each batch was answered.

    The contract is the model's own; what was asked besides is in the table alone.
    """

    contract: Mapping[str, Any]
    told: Sequence[Told]

    @property
    def device(self) -> str:
        """``CPU`` or ``GPU``, or both where the workers had not the same."""
        return ", ".join(sorted({one.device for one in self.told})) or device()

    def speed(self) -> dict[str, float]:
        """``load_seconds``, ``seconds`` and ``sentences_per_second``, for people."""
        return {
            "load_seconds": round(max((one.load_seconds for one in self.told), default=0.0), 3),
            "seconds": round(seconds(self.told), 3),
            "sentences_per_second": round(speed(self.told), 1),
        }


@dataclasses.dataclass(frozen=True)
class Decoding:
    """What is asked of one model and then of another.

    Attributes:
        pipeline: makes an empty Beam pipeline.
        plan: the rows, in batches.
        features: those of the task.
        given: what is asked of the references besides.
    """

    pipeline: Callable[[], beam.Pipeline]
    plan: Plan
    features: Sequence[Feature]
    given: Sequence[asking.Given]

    def __call__(
        self,
        model: Path,
        table: Path,
        label: str,
        first: float = 0.0,
        last: float = 1.0,
        lenient: bool = False,
    ) -> Decoded:
        """Loads a SavedModel and asks the signature that tells most for every row.

        An empty text is decoded like any other.

        Args:
            model: the folder with ``saved_model.pb``.
            table: the file for the answers, in row order; it is whole or not there.
            label: the model, for people.
            first: the fraction of the progress at which it begins.
            last: the one at which it ends.
            lenient: whether a model leaves out the weights of a layer that it has not, and those of
                rows that are too long for them.

        Raises:
            UserError: a row is longer than the model takes, or it has not the layer.
            SavedModelError: the model is not what it should be, or one of another task.
            WorkerError: something else went wrong where it was asked.
        """
        contract = self._checked(model)
        if not self.plan.rows:
            predictions.write(table, self.features, [], [])
            return Decoded(contract, [])
        # Beside the table, for all workers must see it; a killed run's goes with the artifact.
        folder = table.parent / f".parts-{table.stem}-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True)
        ask = asking.Ask(model, self.features, folder, self.given, lenient)
        try:
            with watching(folder, label, self._noun, self.plan.rows, first, last):
                self._run(ask, folder)
            windows = [[parts.path(folder, n) for n in window] for window in self.plan.windows]
            predictions.join(table, windows)
            return Decoded(contract, list(parts.done(folder, {}).values()))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, ask: asking.Ask, folder: Path) -> None:
        shards = self.plan.shards
        try:
            with self.pipeline() as pipeline:
                _ = (
                    pipeline
                    | "Shards" >> beam.Create(shards, reshuffle=len(shards) > 1)
                    | "Read" >> beam.FlatMap(asking.read)
                    | "Batches" >> beam.GroupByKey()
                    | "Ask" >> beam.ParDo(ask)
                )
        except Exception as error:
            if (failure := parts.failure(folder)) is not None:
                raise failure from error
            raise
        finally:
            # What is shared lives on in this process until something else is.
            Shared().acquire(lambda: None)

    def _checked(self, model: Path) -> dict[str, Any]:
        """The contract of a model that can be asked for these rows."""
        if not (model / "saved_model.pb").is_file():
            raise SavedModelError(f"there is no model at {model}")
        contract = read_contract(model)
        inputs = [feature.name for feature in self.features if feature.role == "input"]
        for entry in contract["inputs"]:
            if entry["name"] not in inputs:
                has = ", ".join(inputs)
                raise SavedModelError(f"it takes {entry['name']}, and the rows have {has}")
        (wanted,) = (f.kind for f in self.features if f.role == "reference")
        if (kind := contract["answer_kind"]) != wanted:
            raise SavedModelError(
                f"its answers are of the kind {kind}, and the references are {wanted}"
            )
        return contract

    @property
    def _noun(self) -> str:
        """What the rows are called."""
        inputs = [feature.kind for feature in self.features if feature.role == "input"]
        return "sentences" if inputs == ["text"] else "rows"
