"""The number format of a training: what is fast on the GPUs, and what is slow here."""

import pytest
import tensorflow as tf

from regard.components.settings.trainer import (
    RunInputs,
    TrainerConfig,
    TrainingData,
    TrainingJob,
)
from regard.components.trainer import precision as precision_module
from regard.components.trainer.backends.tensorflow import TensorFlowBackend
from regard.components.trainer.precision import fast_precision, resolve_precision
from tests.components.trainer.tiny_training import training_config


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([], "float32"),
        ([(9, 0), (8, 0)], "mixed_bfloat16"),
        ([(7, 5)], "mixed_float16"),
        ([(9, 0), (7, 0)], "mixed_float16"),  # supported by all of them
        ([(6, 1), (9, 0)], "float32"),
    ],
)
def test_the_format_that_is_fast_on_all_gpus(capabilities, expected):
    assert fast_precision(capabilities) == expected


def training_job(precision):
    training = training_config(precision=precision)
    return TrainingJob(
        config=TrainerConfig(task="translation", model={}, training=training),
        run=RunInputs(checkpoint_key="k3y"),
        data=TrainingData([], [], ""),
        run_folder="",
    )


def test_an_explicit_precision_is_kept():
    job = training_job("mixed_float16")
    assert resolve_precision(job) == job


@pytest.mark.parametrize(
    ("features", "gpus", "notes"),
    [
        ({"avx2"}, [], 1),
        ({"avx2", "avx512_bf16"}, [], 0),
        ({"avx2"}, [(9, 0)], 0),
        (set(), [], 0),
    ],
)
def test_a_precision_that_is_slow_on_this_machine_is_reported(monkeypatch, features, gpus, notes):
    emitted = []
    monkeypatch.setattr(precision_module, "read_features", lambda: features)
    monkeypatch.setattr(TensorFlowBackend, "compute_capabilities", lambda backend: gpus)
    monkeypatch.setattr(
        precision_module.events, "emit", lambda kind, **event: emitted.append((kind, event["text"]))
    )
    job = training_job("mixed_bfloat16")
    assert resolve_precision(job) == job
    assert len(emitted) == notes
    assert all(kind == "note" and "mixed_bfloat16" in text for kind, text in emitted)


@pytest.mark.parametrize(
    ("capability", "precision", "key"),
    [((8, 9), "mixed_bfloat16", "k3y-mixed_bfloat16"), (None, "float32", "k3y")],
)
def test_auto_precision_depends_on_the_gpus(monkeypatch, capability, precision, key):
    gpus = [] if capability is None else ["GPU:0"]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(
        tf.config.experimental,
        "get_device_details",
        lambda gpu: {"compute_capability": capability},
    )
    job = resolve_precision(training_job("auto"))
    assert (job.config.training.precision, job.run.checkpoint_key) == (precision, key)
