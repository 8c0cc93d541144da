"""The Tuner's place in the graph: TFX's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import components, types
from tfx.dsl.components.base import executor_spec
from tfx.proto import trainer_pb2

from components.tuner.executor import Executor

_TUNER_FN = "components.tuner.search.tuner_fn"


class Tuner(components.Tuner):
    """Searches for the best values of a few keys of the configuration.

    Args:
        examples: the transformed examples; train is trained on, eval is what trials are judged by.
        transform_graph: what transformed them, with the tokenizer.
        custom_config: what ``tuner_fn`` takes.

    Outputs: ``best_hyperparameters`` and ``tuner_results``.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        transform_graph: types.BaseChannel,
        custom_config: Mapping[str, Any],
    ):
        super().__init__(
            examples=examples,
            transform_graph=transform_graph,
            tuner_fn=_TUNER_FN,
            train_args=trainer_pb2.TrainArgs(splits=["train"]),
            eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
            custom_config=dict(custom_config),
        )
