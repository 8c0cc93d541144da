"""TFX's Trainer with the run-time parameters of a cluster run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.proto import trainer_pb2
from tfx.types import standard_artifacts, standard_component_specs
from tfx.utils import json_utils

from regard.components.common import runtime_parameters
from regard.components.trainer.executor import Executor

_RUN_FN = "regard.components.trainer.run_fn.run_fn"


class TrainerSpec(standard_component_specs.TrainerSpec):
    """Inputs, outputs and parameters of the Trainer."""

    PARAMETERS = {
        **standard_component_specs.TrainerSpec.PARAMETERS,
        **runtime_parameters.properties("training"),
    }


class Trainer(base_component.BaseComponent):
    """Trains and exports the model with ``regard.components.trainer.run_fn``.

    Args:
        examples: the transformed examples; the model is trained on the split ``train`` and
            evaluated on ``eval``.
        transform_graph: the Transform graph, with the tokenizers.
        custom_config: a ``TrainerConfig`` as plain JSON values, and the digests that belong in the
            cache key.
        run_parameters: the run-time parameters by name; None for a local run.

    Outputs: ``model`` and ``model_run``.
    """

    SPEC_CLASS = TrainerSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        transform_graph: types.BaseChannel,
        custom_config: Mapping[str, object],
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
                **runtime_parameters.of_sections(run_parameters, "training"),
            )
        )
