"""The Tuner component."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os

from tfx import components, types
from tfx.dsl.components.base import executor_spec
from tfx.proto import trainer_pb2
from tfx.types.standard_artifacts import Examples, TransformGraph

from regard.components.common.code_digest import code_digest
from regard.components.common.node_arguments import NodeArguments, Settings
from regard.components.settings.trainer import RunInputs
from regard.components.settings.tune import TuneConfig
from regard.components.tuner.dimensions import dimensions
from regard.components.tuner.executor import Executor
from regard.components.tuner.search import TunerSettings
from regard.components.tuner.space import SearchSpace

_TUNER_FN = "regard.components.tuner.search.tuner_fn"
# Keys that may change while a search keeps its trials.
_RESUMABLE = ("max_trials", "iterations", "max_failed_trials")


class Tuner(components.Tuner):
    """Searches for the best values of some configuration keys.

    Args:
        examples: the transformed examples. Trials train on train and are scored on eval.
        transform_graph: the Transform output, which contains the tokenizer.
        task: the name of the task.
        tune: the section ``tune``: what to search.
        folder: the folder of searches. A search with equal settings resumes there.
        model: the section ``model``.
        training: the section ``training``.
        search: the section ``search``.
        serving: the section ``serving``.
        tags: the section ``data.tags``; None: no tags.
        protect: the section ``data.protect``; None: no protected spans.
        data: a digest of the data; a search resumes only with an equal one.
        run: what our own graph knows about a run, without a folder for checkpoints.

    Attributes:
        search_folder: the folder of this search.

    Outputs: ``best_hyperparameters`` and ``tuner_results``.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        transform_graph: types.BaseChannel,
        task: str,
        tune: Settings,
        folder: str,
        model: Settings | None = None,
        training: Settings | None = None,
        search: Settings | None = None,
        serving: Settings | None = None,
        tags: Settings | None = None,
        protect: Settings | None = None,
        data: str = "",
        run: RunInputs | None = None,
    ):
        arguments = NodeArguments("Tuner", task)
        inputs = {"examples": examples, "transform_graph": transform_graph}
        arguments.check_channels({"examples": Examples, "transform_graph": TransformGraph}, inputs)
        section = arguments.parse("tune", TuneConfig, tune)
        config = arguments.trainer_config(model, training, search, serving, tags, protect)
        space = SearchSpace(())
        if config is not None:
            for name, message in section.algorithm_problems(config.training.max_epochs):
                arguments.add(("tune", name), message)
            section = section.with_defaults(config.training)
            try:
                space = SearchSpace(dimensions(section, config))
            except (AttributeError, KeyError, IndexError, ValueError) as error:
                message = f"It names a key that the sections do not have: {error}. Correct it."
                arguments.add(("tune", "search_space"), message)
        config = arguments.check(config)
        settings = TunerSettings(
            config=config.to_plain_values(),
            run=run or RunInputs(),
            code=code_digest("regard.components.tuner"),
            tune=section,
            space=space,
            folder="",
        )
        self.search_folder = os.path.join(os.path.abspath(folder), _search_key(settings, data))
        settings = settings.model_copy(update={"folder": self.search_folder})
        super().__init__(
            examples=examples,
            transform_graph=transform_graph,
            tuner_fn=_TUNER_FN,
            train_args=trainer_pb2.TrainArgs(splits=["train"]),
            eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
            custom_config=settings.model_dump(mode="json"),
        )


def _search_key(settings: TunerSettings, data: str) -> str:
    """Return a digest of what the trials depend on."""
    content = [
        data,
        settings.config,
        settings.run.model_dump(mode="json"),
        settings.code,
        dataclasses.asdict(settings.space),
        settings.tune.model_dump_json(exclude={"search_space", *_RESUMABLE}),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
