"""The graph of a search: the training pipeline up to the transformed data, and the Tuner."""

from collections.abc import Mapping
from pathlib import Path

from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.pipeline import Pipeline

from regard.components.settings.trainer import RunInputs
from regard.components.tuner.component import Tuner
from regard.core import owned_folders
from regard.pipeline.config import Config
from regard.pipeline.context import local_context
from regard.pipeline.graph import build_pipeline
from regard.pipeline.workspace import Workspace


def create_tuning(config: Config, workspace: Workspace, restart: bool = False) -> Pipeline:
    """Return the pipeline of a configuration with an additional Tuner.

    Run up to the Tuner, it shares all nodes before it, and their cached outputs, with the pipeline
    that trains.

    Args:
        config: the configuration.
        workspace: contains the folders of the pipeline.
        restart: whether to remove the earlier searches, so that all trials run again.
    """
    assert config.tune is not None
    tune, context = config.tune, local_context(config, workspace)
    run = RunInputs.model_validate(
        {"vectors": context.data.word_vectors, "start": context.models.start}
    )

    def add_tuner(nodes: Mapping[str, BaseNode]) -> list[BaseNode]:
        preprocess = nodes["Preprocess"]
        node = Tuner(
            examples=preprocess.outputs["transformed_examples"],
            transform_graph=preprocess.outputs["transform_graph"],
            task=config.task,
            tune=tune,
            folder=str(workspace.pipeline(config.name).tuning),
            model=config.model,
            training=config.training,
            search=config.search,
            serving=config.serving,
            tags=config.data.tags,
            protect=config.data.protect,
            data=context.keys.training,
            run=run,
        )
        if restart:
            _remove_searches(Path(node.search_folder))
        return [node]

    # The node cannot be added to a finished pipeline: TFX would then add Beam's arguments to all
    # nodes a second time, which changes their cache keys.
    return build_pipeline(config, context, add_tuner)


def _remove_searches(folder: Path) -> None:
    """Remove a search and the earlier ones next to it."""
    for earlier in folder.parent.iterdir() if folder.parent.is_dir() else ():
        owned_folders.remove(earlier, owned_folders.SEARCH)
    owned_folders.discard(folder, owned_folders.SEARCH)
