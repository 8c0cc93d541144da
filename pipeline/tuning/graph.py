"""The graph of a search: the training pipeline up to the transformed data, and the Tuner."""

import dataclasses
import json

from tfx.orchestration.pipeline import Pipeline

from regard.components.common.code_digest import code_digest
from regard.components.nodes import Preprocess
from regard.components.settings.trainer import RunInputs
from regard.components.settings.tune import DEFAULT_FACTOR, DEFAULT_TRIALS, TuneConfig
from regard.components.tuner.component import Tuner
from regard.components.tuner.search import TunerSettings
from regard.components.tuner.space import SearchSpace
from regard.core import owned_folders
from regard.pipeline import cache_keys
from regard.pipeline.config import Config
from regard.pipeline.config.tune_checks import dimensions
from regard.pipeline.context import local_context
from regard.pipeline.graph import build_pipeline, trainer_sections
from regard.pipeline.workspace import Workspace

# Keys that may change while a search keeps its trials.
_RESUMABLE = ("max_trials", "iterations", "max_failed_trials")


def create_tuning(config: Config, workspace: Workspace, restart: bool = False) -> Pipeline:
    """Return the pipeline of a configuration with an additional Tuner.

    Run up to the Tuner, it shares all nodes before it, and their cached outputs, with the pipeline
    that trains.

    Args:
        config: the configuration.
        workspace: contains the folders of the pipeline.
        restart: whether to remove the earlier searches, so that all trials run again.
    """
    context = local_context(config, workspace)
    trainer, code = trainer_sections(config), code_digest("regard.components.tuner")
    run = RunInputs.model_validate(
        {"vectors": context.data.word_vectors, "start": context.models.start}
    )
    tune = with_defaults(config)
    space = SearchSpace(dimensions(config))
    identity = tune.model_dump_json(exclude={"search_space", *_RESUMABLE})
    settings = json.dumps(
        [trainer, run.model_dump(mode="json"), code, dataclasses.asdict(space), identity],
        sort_keys=True,
    )
    key = cache_keys.digest(context.keys.training, settings)
    folder = workspace.pipeline(config.name).tuning / key
    if restart:
        for earlier in folder.parent.iterdir() if folder.parent.is_dir() else ():
            owned_folders.remove(earlier, owned_folders.SEARCH)
        owned_folders.discard(folder, owned_folders.SEARCH)

    def tuner(preprocess: Preprocess) -> Tuner:
        return Tuner(
            examples=preprocess.outputs["transformed_examples"],
            transform_graph=preprocess.outputs["transform_graph"],
            settings=TunerSettings(
                config=trainer, run=run, code=code, tune=tune, space=space, folder=str(folder)
            ),
        )

    # The node cannot be added to a finished pipeline: TFX would then add Beam's arguments to all
    # nodes a second time, which changes their cache keys.
    return build_pipeline(context, config, tuner)


def with_defaults(config: Config) -> TuneConfig:
    """Return the section ``tune`` with the defaults that other sections and keys determine."""
    tune = config.tune
    assert tune is not None
    stop = config.training.early_stopping
    defaults: dict[str, str | int | None] = {"objective": stop.metric if stop else "loss"}
    if tune.algorithm == "hyperband":
        defaults |= {"max_epochs": config.training.max_epochs}
        defaults |= {"factor": DEFAULT_FACTOR, "iterations": 1}
    else:
        defaults |= {"max_trials": DEFAULT_TRIALS}
    missing = {name: value for name, value in defaults.items() if getattr(tune, name) is None}
    return tune.model_copy(update=missing)
