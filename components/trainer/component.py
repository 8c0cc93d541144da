"""TFX's Trainer with the run-time parameters of a cluster run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.proto import trainer_pb2
from tfx.types.standard_artifacts import Examples, Model, ModelRun, TransformGraph
from tfx.utils import json_utils

from regard.components.common.component import Component
from regard.components.trainer.executor import Executor

_RUN_FN = "regard.components.trainer.run_fn.run_fn"


class Trainer(Component):
    """Trains and exports the model with ``regard.components.trainer.run_fn``.

    Args:
        examples: the transformed examples; the model is trained on the split ``train`` and
            evaluated on ``eval``.
        transform_graph: the Transform graph, with the tokenizers.
        custom_config: a ``TrainerConfig`` as plain JSON values, and the digests that belong in the
            cache key.
        code: the digest of the code that trains, for the cache.
        run_parameters: the run-time parameters by name; None for a local run.

    Outputs: ``model`` and ``model_run``.
    """

    EXECUTOR = Executor
    PARAMETERS = {
        "train_args": trainer_pb2.TrainArgs,
        "eval_args": trainer_pb2.EvalArgs,
        "run_fn": str,
        "custom_config": str,
    }
    RUN_SECTIONS = ("training",)
    INPUTS = {"examples": Examples, "transform_graph": TransformGraph}
    OUTPUTS = {"model": Model, "model_run": ModelRun}

    def __init__(self, custom_config: Mapping[str, object], **arguments: Any):
        super().__init__(
            train_args=trainer_pb2.TrainArgs(splits=["train"]),
            eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
            run_fn=_RUN_FN,
            custom_config=json_utils.dumps(dict(custom_config)),
            **arguments,
        )
