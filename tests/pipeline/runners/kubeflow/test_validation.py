"""Checks on a compiled pipeline."""

import copy
import functools

import pytest
from kfp.components import load_component_from_text

from regard.core.errors import UserError
from regard.pipeline.runners.kubeflow.pipeline_file import (
    CompiledPipeline,
    find_problems,
    validate_pipeline,
)


@pytest.fixture
def edited(pipeline):
    """A copy of the pipeline to edit."""
    return CompiledPipeline(copy.deepcopy(pipeline.spec), copy.deepcopy(pipeline.platform))


EXECUTORS = "deploymentSpec.executors"
CONTAINER = f"{EXECUTORS}.Trainer_executor.container"
EDITS = {
    "not a valid PipelineSpec.*unknown": ("unknown", 1),
    "not a valid PipelineSpec.*deploymentSpec|not a valid.*executors": (EXECUTORS, ["a"]),
    "schemaVersion is '2.0.0'": ("schemaVersion", "2.0.0"),
    "root.dag.tasks is empty": ("root.dag.tasks", {}),
    "Trainer_executor is a resolver": (f"{EXECUTORS}.Trainer_executor", {"resolver": {}}),
    "container.command must be": (f"{CONTAINER}.command", ["tfx"]),
    "lifecycle is ignored": (f"{CONTAINER}.lifecycle", {"preCacheCheck": {"command": ["drive"]}}),
}


def test_our_own_pipeline_is_valid(pipeline):
    validate_pipeline(pipeline, "p.yaml")
    load_component_from_text(pipeline.to_yaml())  # by the Kubeflow SDK


@pytest.mark.parametrize("message", EDITS)
def test_each_mistake_is_reported(edited, message):
    path, value = EDITS[message]
    *parents, key = path.split(".")
    functools.reduce(dict.__getitem__, parents, edited.spec)[key] = value
    with pytest.raises(UserError, match=message) as caught:
        validate_pipeline(edited, "p.yaml")
    assert (caught.value.where, "regard compile" in caught.value.remedy) == ("p.yaml", True)


def test_the_platform_is_checked(edited):
    edited.platform["platforms"] = 5
    assert "not a valid PipelineSpec or PlatformSpec" in next(find_problems(edited))
