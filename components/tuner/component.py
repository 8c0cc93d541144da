"""The Tuner component."""

from __future__ import annotations

from tfx import components, types
from tfx.dsl.components.base import executor_spec
from tfx.proto import trainer_pb2

from regard.components.tuner.executor import Executor
from regard.components.tuner.search import TunerSettings

_TUNER_FN = "regard.components.tuner.search.tuner_fn"


class Tuner(components.Tuner):
    """Searches for the best values of some configuration keys.

    Args:
        examples: the transformed examples. Trials train on train and are scored on eval.
        transform_graph: the Transform output, which contains the tokenizer.
        settings: what to search, and the configuration of the trials.

    Outputs: ``best_hyperparameters`` and ``tuner_results``.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        transform_graph: types.BaseChannel,
        settings: TunerSettings,
    ):
        super().__init__(
            examples=examples,
            transform_graph=transform_graph,
            tuner_fn=_TUNER_FN,
            train_args=trainer_pb2.TrainArgs(splits=["train"]),
            eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
            custom_config=settings.model_dump(mode="json"),
        )
