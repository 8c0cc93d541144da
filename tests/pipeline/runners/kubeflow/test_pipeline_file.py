"""Reading and writing compiled pipelines."""

import json

import pytest
import yaml

from regard.components.common.errors import UserError
from regard.pipeline.runners.kubeflow.pipeline_file import (
    CompiledPipeline,
    is_compiled_pipeline,
    read_text,
)
from tests.pipeline.runners.kubeflow.pipelines import CONFIG, compile_config


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return compile_config(tmp_path_factory.mktemp("pipeline"))


def test_a_file_is_reproducible_and_reads_back(pipeline, tmp_path):
    text = pipeline.to_yaml()
    assert text == compile_config(tmp_path).to_yaml()
    assert "# Parameter max_epochs (default 20): Maximum passes" in text
    assert "*id" not in text  # no aliases
    assert CompiledPipeline.from_yaml(text, "p.yaml") == pipeline


def test_a_string_that_yaml_1_2_reads_as_a_number_is_quoted():
    spec = {"pipelineInfo": {"name": "1234e5"}, "root": {}}
    text = CompiledPipeline(spec).to_yaml()
    assert "name: '1234e5'" in text
    assert CompiledPipeline.from_yaml(text, "p.yaml").name == "1234e5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found 0 and 0 in 0 documents"),
        ("a: [b", "Invalid YAML"),
        ("[" * 5000, "Invalid YAML"),
        ("a: b", "found 0 and 0 in 1 documents"),
        ("root: {}\n---\nroot: {}\n", "found 2 and 0"),
        ("root: {}\n---\nnotes: none\n", "found 1 and 0 in 2"),
        ('{"pipelineSpec": {}}', "PipelineJob for Vertex AI"),
    ],
)
def test_invalid_files_are_refused(text, message):
    with pytest.raises(UserError, match=message) as caught:
        CompiledPipeline.from_yaml(text, "p.yaml")
    assert caught.value.where.startswith("p.yaml")


def test_a_configuration_is_not_a_compiled_pipeline(pipeline):
    assert is_compiled_pipeline(pipeline.to_yaml())
    assert is_compiled_pipeline(json.dumps(pipeline.spec))
    assert is_compiled_pipeline(yaml.safe_dump({"pipelineSpec": {}}))
    assert not is_compiled_pipeline(CONFIG)
    assert not is_compiled_pipeline("a: [b")


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_text(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"\xe4")
    with pytest.raises(UserError, match="not UTF-8"):
        read_text(tmp_path / "latin.yaml")
