"""The choices of the YAML are those that the code has."""

from __future__ import annotations

import typing

from models.tasks import TASKS
from pipeline.config.evaluation import SCALES, Metric
from pipeline.config.sections import FEATURES, Task


def test_tasks() -> None:
    assert set(typing.get_args(Task)) == set(TASKS) == set(FEATURES)


def test_every_metric_has_a_scale() -> None:
    assert set(typing.get_args(Metric)) == set(SCALES)
