"""Runs a model on rows, for the Predictor and for ``regard evaluate``."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from regard.components.common.prediction_table import Row
from regard.components.predictor.reference_outputs import ReferenceOutput
from regard.components.predictor.split_reader import row_length
from regard.core.errors import UserError
from regard.serving import saved_model
from regard.serving.saved_model import InputLengthError, Model, Prediction


@dataclasses.dataclass(frozen=True)
class DecodedRows:
    """The predictions of rows.

    Attributes:
        predictions: the prediction of each row, with reference outputs.
        seconds: the time of the model, without reference outputs.
    """

    predictions: list[Prediction]
    seconds: float


@dataclasses.dataclass(frozen=True)
class RowDecoder:
    """Runs the detail signature of a model on rows in batches.

    Attributes:
        model: the model.
        batch_size: the maximum number of rows in a batch.
        reference_outputs: further outputs for the references.
        skip_unavailable: whether to leave out reference outputs that the model cannot give.
    """

    model: Model
    batch_size: int
    reference_outputs: Sequence[ReferenceOutput] = ()
    skip_unavailable: bool = False

    def decode(
        self, rows: Sequence[Row], on_progress: Callable[[int], None] = lambda count: None
    ) -> DecodedRows:
        """Decode rows, long ones first, so that batches have rows of similar lengths.

        Args:
            rows: the rows.
            on_progress: called with the number of decoded rows after each batch.

        Raises:
            UserError: an input is too long, or the model has no such layer or head.
            SavedModelError: the model does not fit its contract.
        """
        order = sorted(range(len(rows)), key=lambda index: -row_length(rows[index]))
        predictions: dict[int, Prediction] = {}
        seconds = 0.0
        for start in range(0, len(order), self.batch_size):
            indices = order[start : start + self.batch_size]
            batch = [rows[index] for index in indices]
            started = time.monotonic()
            outputs = predict_batch(self.model, batch)
            seconds += time.monotonic() - started
            for output in self.reference_outputs:
                outputs = self._extend(output, outputs, batch)
            predictions.update(zip(indices, outputs, strict=True))
            on_progress(len(predictions))
        return DecodedRows([predictions[index] for index in range(len(rows))], seconds)

    def _extend(
        self, output: ReferenceOutput, predictions: list[Prediction], rows: Sequence[Row]
    ) -> list[Prediction]:
        inputs, references = [row.inputs for row in rows], [row.references[0] for row in rows]
        try:
            return output.extend(self.model, predictions, inputs, references)
        except UserError:
            if self.skip_unavailable:
                return predictions
            raise


def predict_batch(model: Model, rows: Sequence[Row]) -> list[Prediction]:
    """Return the model's predictions; an error names the row that is too long.

    Raises:
        UserError: an input is too long.
    """
    try:
        return saved_model.predict_in_detail(model, [row.inputs for row in rows])
    except InputLengthError as error:
        rejected = _first_rejected(model, rows)
        position = f"{rejected.file}:{rejected.line}: " if rejected and rejected.line else ""
        message = f"A row cannot be decoded: {position}{error}"
        remedy = "Increase search.max_source_length, or set long_source: truncate."
        raise UserError(message, "search.long_source", remedy) from None


def _first_rejected(model: Model, rows: Sequence[Row]) -> Row | None:
    signature = model.contract["detail"]
    for row in rows:
        try:
            model.predict(signature, [row.inputs])
        except InputLengthError:
            return row
    return None
