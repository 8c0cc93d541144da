"""The Trainer's place in the graph: TFX's own, with the parameters of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.proto import trainer_pb2
from tfx.types import standard_artifacts, standard_component_specs
from tfx.utils import json_utils

from components import parameters
from components.trainer.executor import Executor

_RUN_FN = "components.trainer.run.run_fn"


class TrainerSpec(standard_component_specs.TrainerSpec):
    """What the Trainer takes and gives."""

    PARAMETERS = {
        **standard_component_specs.TrainerSpec.PARAMETERS,
        **parameters.properties("training"),
    }


class Trainer(base_component.BaseComponent):
    """Trains and exports the model with ``components.trainer.run``.

    Args:
        examples: the transformed examples; train is trained on, eval is for evaluation.
        transform_graph: what transformed them, with the tokenizer.
        custom_config: what ``run_fn`` takes. With ``checkpoints_by_content`` the folder of the
            checkpoints is told apart by the examples' content, too, where that was not known.
        run_parameters: the parameters of a run, by name; none where it is run as it is made.

    Outputs: ``model`` and ``model_run``.
    """

    SPEC_CLASS = TrainerSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        transform_graph: types.BaseChannel,
        custom_config: Mapping[str, Any],
        run_parameters: Mapping[str, Any] | None = None,
    ):
        super().__init__(
            spec=TrainerSpec(
                examples=examples,
                transform_graph=transform_graph,
                train_args=trainer_pb2.TrainArgs(splits=["train"]),
                eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
                run_fn=_RUN_FN,
                custom_config=json_utils.dumps(dict(custom_config)),
                model=types.Channel(type=standard_artifacts.Model),
                model_run=types.Channel(type=standard_artifacts.ModelRun),
                **parameters.of_sections(run_parameters, "training"),
            )
        )
