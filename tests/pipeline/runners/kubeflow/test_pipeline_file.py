"""Reading and writing compiled pipelines."""

import json

import pytest

from regard.pipeline.runners.kubeflow.pipeline_file import read_pipeline
from tests.pipeline.runners.kubeflow.pipelines import CONFIG, compile_config


def test_a_file_is_reproducible_and_reads_back(pipeline, tmp_path):
    text = pipeline.to_yaml()
    assert text == compile_config(tmp_path).to_yaml()
    assert "# Parameter max_epochs (default 20): Maximum passes" in text
    assert "*id" not in text  # no aliases
    path = tmp_path / "p.yaml"
    for content in (text, json.dumps(pipeline.spec)):
        path.write_text(content)
        assert read_pipeline(path).spec == pipeline.spec
    assert read_pipeline(path).platform == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a: [b",
        b"[" * 5000,
        CONFIG.encode(),
        b"pipelineInfo: {}\n---\npipelineInfo: {}\n",
        b"pipelineInfo: {}\n---\nnotes: none\n",
        b"\xe4",
    ],
)
def test_other_files_are_not_compiled_pipelines(tmp_path, content):
    (tmp_path / "p.yaml").write_bytes(content)
    assert read_pipeline(tmp_path / "p.yaml") is None
    assert read_pipeline(tmp_path / "none.yaml") is None
