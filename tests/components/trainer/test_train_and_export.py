"""The rows that a calibration is fitted on."""

import dataclasses
from types import SimpleNamespace

import pytest

from regard.components.settings.serving import ConfidenceConfig
from regard.components.trainer.train_and_export import _calibration_rows


@dataclasses.dataclass(frozen=True)
class Split:
    max_rows: int | None = None

    def complete_rows(self, count):
        return iter([(self.max_rows, count)])


@pytest.mark.parametrize(("confidence", "rows"), [(None, []), (ConfidenceConfig(rows=7), [(7, 7)])])
def test_rows_of_the_eval_split(confidence, rows):
    serving = SimpleNamespace(confidence=confidence)
    job = SimpleNamespace(config=SimpleNamespace(serving=serving))
    result = SimpleNamespace(job=job, eval_batches=Split())
    assert list(_calibration_rows(result)) == rows
