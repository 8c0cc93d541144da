"""Notes of ``regard validate`` on made-up machines; the command runs in the tests of pipelines."""

import pytest

from regard.pipeline.cli import validate


@pytest.mark.parametrize(
    ("features", "gpus", "count"),
    [({"avx2"}, [], 1), ({"avx2"}, ["NVIDIA H100"], 0), ({"avx512_bf16"}, [], 0)],
)
def test_a_precision_that_is_slow_on_this_machine_is_noted_once(monkeypatch, features, gpus, count):
    monkeypatch.setattr(validate, "read_features", lambda: features)
    monkeypatch.setattr(validate, "query_driver", lambda: (gpus, ""))
    notes = validate._precision_notes({"float32", "auto", "mixed_bfloat16"})
    assert len(notes) == count
    assert all(note.startswith("training.precision: mixed_bfloat16") for note in notes)
