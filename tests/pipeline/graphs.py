"""The pipeline of a configuration, as a worker builds it."""

from tfx.orchestration.pipeline import Pipeline

from regard.pipeline.config import Config
from regard.pipeline.context import local_context
from regard.pipeline.graph import build_pipeline
from regard.pipeline.workspace import Workspace


def create_pipeline(config: Config, workspace: Workspace) -> Pipeline:
    return build_pipeline(config, local_context(config, workspace))
