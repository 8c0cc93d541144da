"""What `training.precision: auto` is on which GPU."""

import pytest

from components.trainer import precision


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([], "float32"),
        ([(9, 0), (8, 0)], "mixed_bfloat16"),
        ([(7, 5)], "mixed_float16"),
        ([(9, 0), (7, 0)], "mixed_float16"),  # what all of them can
        ([(6, 1), (9, 0)], "float32"),
    ],
)
def test_the_format_that_all_gpus_are_fast_in(capabilities, expected):
    assert precision.of_gpus(capabilities) == expected


def test_what_is_named_stays():
    config = {"training": {"precision": "mixed_float16", "seed": 1}, "checkpoints": "/c"}
    assert precision.resolved(config) == config


@pytest.mark.parametrize(
    ("capability", "chosen", "checkpoints"),
    [((8, 9), "mixed_bfloat16", "/c-mixed_bfloat16"), (None, "float32", "/c")],
)
def test_auto_is_decided_where_the_training_runs(monkeypatch, capability, chosen, checkpoints):
    """Only the driver's answer is made up."""
    gpus = [] if capability is None else ["GPU:0"]
    monkeypatch.setattr(precision.tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(
        precision.tf.config.experimental,
        "get_device_details",
        lambda gpu: {"compute_capability": capability},
    )
    given = {"training": {"precision": "auto", "seed": 1}, "checkpoints": "/c", "task": "t"}
    found = precision.resolved(given)
    assert found == {
        "training": {"precision": chosen, "seed": 1},
        "checkpoints": checkpoints,
        "task": "t",
    }
    assert given["training"]["precision"] == "auto"
