"""Notes of the validation on made-up machines; the command runs in the tests of pipelines."""

import pytest

from regard.pipeline import validation


@pytest.mark.parametrize(
    ("features", "gpus", "count"),
    [({"avx2"}, [], 1), ({"avx2"}, ["NVIDIA H100"], 0), ({"avx512_bf16"}, [], 0)],
)
def test_a_precision_that_is_slow_on_this_machine_is_noted_once(monkeypatch, features, gpus, count):
    monkeypatch.setattr(validation, "read_features", lambda: features)
    monkeypatch.setattr(validation, "query_driver", lambda: (gpus, ""))
    notes = validation._precision_notes({"float32", "auto", "mixed_bfloat16"})
    assert len(notes) == count
    assert all(note.startswith("training.precision: mixed_bfloat16") for note in notes)
