"""A small configuration with a section kubeflow."""

from pathlib import Path

from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
from regard.pipeline.runners.kubeflow.pipeline_file import CompiledPipeline
from regard.pipeline.runners.kubeflow.settings import load_for_cluster

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
    """Write a configuration whose data does not exist on this machine."""
    path = folder / "tiny.yaml"
    path.write_text(config + more)
    return path


def compile_config(folder: Path, more: str = KUBEFLOW, config: str = CONFIG) -> CompiledPipeline:
    """Write a configuration and compile it."""
    return compile_pipeline(load_for_cluster(write_config(folder, more, config)))
