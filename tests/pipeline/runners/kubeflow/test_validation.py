"""Checks on a compiled pipeline."""

import copy
import sys

import pytest

from regard.components.common.errors import UserError
from regard.pipeline.runners.kubeflow.pipeline_file import CompiledPipeline
from regard.pipeline.runners.kubeflow.validation import find_problems, validate_pipeline
from tests.pipeline.runners.kubeflow.pipelines import compile_config


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return compile_config(tmp_path_factory.mktemp("pipeline"))


@pytest.fixture
def edited(pipeline):
    """A copy of the pipeline to edit."""
    return CompiledPipeline(copy.deepcopy(pipeline.spec), copy.deepcopy(pipeline.platform))


def trainer(spec):
    return spec["deploymentSpec"]["executors"]["Trainer_executor"]


def task(spec):
    return spec["root"]["dag"]["tasks"]["Trainer"]


EDITS = {
    "not a valid PipelineSpec.*unknown": lambda s: s.update(unknown=1),
    "not a valid PipelineSpec.*deploymentSpec|not a valid.*executors": lambda s: s[
        "deploymentSpec"
    ].update(executors=["a"]),
    "schemaVersion is '2.0.0'": lambda s: s.update(schemaVersion="2.0.0"),
    "pipelineInfo.name 'A' is invalid": lambda s: s["pipelineInfo"].update(name="A"),
    "pipelineInfo.name 'a+' is invalid": lambda s: s["pipelineInfo"].update(name="a" * 129),
    "defaultPipelineRoot '/data' is not a bucket": lambda s: s.update(defaultPipelineRoot="/data"),
    "root.dag.tasks is empty": lambda s: s["root"]["dag"].pop("tasks"),
    "seed has no parameterType": lambda s: s["root"]["inputDefinitions"]["parameters"]["seed"].pop(
        "parameterType"
    ),
    "seed has no defaultValue": lambda s: s["root"]["inputDefinitions"]["parameters"]["seed"].pop(
        "defaultValue"
    ),
    "Trainer_executor is a resolver": lambda s: s["deploymentSpec"]["executors"].update(
        Trainer_executor={"resolver": {}}
    ),
    "container has no image": lambda s: trainer(s)["container"].pop("image"),
    "container.command must be": lambda s: trainer(s)["container"].update(command=["tfx"]),
    "lifecycle is ignored": lambda s: trainer(s)["container"].update(
        lifecycle={"preCacheCheck": {"command": ["drive"]}}
    ),
    "executorLabel 'none' is not an executor": lambda s: s["components"]["Trainer"].update(
        executorLabel="none"
    ),
    "componentRef 'none' is not a component": lambda s: task(s).update(
        componentRef={"name": "none"}
    ),
    "depends on 'none', which is not a task": lambda s: task(s).update(dependentTasks=["none"]),
    "inputs lacks 'examples'": lambda s: task(s)["inputs"]["artifacts"].pop("examples"),
    "inputs lacks 'custom_config'": lambda s: task(s)["inputs"]["parameters"].pop("custom_config"),
}


def test_our_own_pipeline_is_valid(pipeline):
    validate_pipeline(pipeline, "p.yaml")


@pytest.mark.parametrize("message", EDITS)
def test_each_mistake_is_reported(edited, message):
    EDITS[message](edited.spec)
    with pytest.raises(UserError, match=message) as caught:
        validate_pipeline(edited, "p.yaml")
    assert (caught.value.where, "regard compile" in caught.value.remedy) == ("p.yaml", True)


def test_the_platform_is_checked(edited):
    executors = edited.platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    executors["Tuner_executor"] = {}
    assert list(find_problems(edited)) == [
        "The PlatformSpec names 'Tuner_executor', which is not an executor."
    ]
    edited.platform["platforms"] = 5
    assert "not a valid PipelineSpec or PlatformSpec" in next(find_problems(edited))


def test_the_sdk_loads_the_pipeline_where_it_is_installed(edited, monkeypatch):
    from kfp import components

    texts = []

    def refuse(text):
        texts.append(text)
        raise ValueError("no such type")

    monkeypatch.setattr(components, "load_component_from_text", refuse)
    (problem,) = find_problems(edited)
    assert problem == "The Kubeflow SDK does not load the pipeline: no such type"
    assert texts == [edited.to_yaml()]
    monkeypatch.setitem(sys.modules, "kfp.components", None)
    assert list(find_problems(edited)) == []
