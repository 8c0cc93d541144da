"""Rows are decoded in batches of similar lengths, and returned in their order."""

import pytest

from regard.components.common.prediction_table import Row
from regard.components.predictor import row_decoder
from regard.components.predictor.row_decoder import RowDecoder
from regard.core.errors import UserError

ROWS = [Row({"source": "x" * length}, ["reference"]) for length in (1, 4, 2, 5, 3)]


class Suffix:
    """A reference output that appends a letter to predictions, or that a model cannot give."""

    def __init__(self, letter):
        self._letter = letter

    def extend(self, model, predictions, rows, references):
        if not self._letter:
            raise UserError("The model has no such layer.")
        return [prediction + self._letter for prediction in predictions]


@pytest.fixture
def batches(monkeypatch):
    """The lengths of the rows of each batch; a prediction is the length as text."""
    result = []

    def predict(model, rows):
        result.append([len(row.inputs["source"]) for row in rows])
        return [str(length) for length in result[-1]]

    monkeypatch.setattr(row_decoder, "predict_batch", predict)
    return result


def test_long_rows_come_first(batches):
    counts = []
    decoded = RowDecoder(None, 2, [Suffix("a"), Suffix("b")]).decode(ROWS, counts.append)
    assert batches == [[5, 4], [3, 2], [1]]
    assert counts == [2, 4, 5]
    assert decoded.predictions == ["1ab", "4ab", "2ab", "5ab", "3ab"]
    assert decoded.seconds >= 0


@pytest.mark.usefixtures("batches")
def test_outputs_that_the_model_cannot_give():
    outputs = [Suffix(""), Suffix("b")]
    with pytest.raises(UserError):
        RowDecoder(None, 5, outputs).decode(ROWS)
    decoded = RowDecoder(None, 5, outputs, skip_unavailable=True).decode(ROWS[:1])
    assert decoded.predictions == ["1b"]
