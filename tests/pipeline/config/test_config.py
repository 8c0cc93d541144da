"""Defaults of sections that depend on the task."""

import pytest

from regard.pipeline.config.config import config_class


def checks(task, **section):
    config = config_class(task)
    data = {"train": "a.jsonl", **({"checks": section} if section else {})}
    return config.model_validate({"name": "x", "task": task, "data": data}).data.checks


@pytest.mark.parametrize(
    ("task", "ratio"), [("translation", 9.0), ("similarity", 9.0), ("summarisation", 50.0)]
)
def test_the_length_ratio_of_a_task(task, ratio):
    assert checks(task).length_ratio.ratio == ratio
    assert checks(task, overlap=None).length_ratio.ratio == ratio
    partial = checks(task, length_ratio={"action": "drop"}).length_ratio
    assert (partial.ratio, partial.action, partial.limit) == (ratio, "drop", 0.05)
    assert checks(task, length_ratio={"ratio": 3}).length_ratio.ratio == 3
    assert checks(task, length_ratio=None).length_ratio is None


def test_answers_in_passages_have_no_length_ratio():
    assert checks("span").length_ratio is None
    assert checks("span", length_ratio={"ratio": 100}).length_ratio.ratio == 100
