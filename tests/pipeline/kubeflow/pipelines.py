"""Pipelines for the tests: a small one of ours, and some of TFX's own components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CONFIG = """
name: tiny
data: {root: "${REGARD_HOME}/data", train: "train-*.tsv"}
tokenizer: {type: char, vocab_size: 20, vocab_limit: soft}
evaluation: {metrics: [exact_match]}
"""
KUBEFLOW = """
kubeflow:
  image: registry.example.org/regard:1
  pipeline_root: minio://mlpipeline/v2/artifacts
  volumes: {regard: /regard}
"""


def write_config(folder: Path, more: str = KUBEFLOW, config: str = CONFIG) -> Path:
    """Writes a configuration whose data is nowhere on this machine."""
    path = folder / "tiny.yaml"
    path.write_text(config + more)
    return path


def compile_tfx(components: list[Any], path: Path, schema_2_1: bool = True) -> Path:
    """Compiles TFX's own components as TFX does, with its own entry point."""
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as tfx_runner
    from tfx.orchestration.pipeline import Pipeline

    runner = tfx_runner.KubeflowV2DagRunner(
        tfx_runner.KubeflowV2DagRunnerConfig(
            default_image="registry.example.org/tfx:1", use_pipeline_spec_2_1=schema_2_1
        ),
        output_dir=str(path.parent),
        output_filename=path.name,
    )
    beam = ["--sdk_container_image=unused"]
    runner.run(
        Pipeline(
            pipeline_name="small",
            pipeline_root="gs://bucket/root",
            components=components,
            beam_pipeline_args=beam,
        )
    )
    return path
