"""Writes the evaluation in the format of TensorFlow Model Analysis, for tools that read it.

``tfma.load_eval_result(folder)`` returns the candidate's metrics, on all rows with intervals, and
in each slice; with ``model_name="production"`` those of the model in production. The decision of
the gate is in ``blessing.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.components.common.files import atomic_path, atomic_write
from regard.components.evaluator.results import (
    BASELINE,
    CANDIDATE,
    PRODUCTION,
    Evaluation,
    MetricResult,
)
from regard.components.evaluator.slices import Slice

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from tensorflow_model_analysis import EvalConfig, MetricsForSlice

FOLDER = "tfma"
COUNT = "example_count"
_SliceKey = tuple[tuple[str, str], ...]


class _Model(NamedTuple):
    """A scored model: TFMA's name for it, its name in slices, its metrics, and its folder."""

    name: str
    model: str
    metrics: Mapping[str, MetricResult]
    path: str = ""


def write(folder: Path, evaluation: Evaluation, slices: Sequence[Slice]) -> None:
    """Write the folder.

    Args:
        folder: the folder.
        evaluation: the metrics on all rows.
        slices: the scores in slices.
    """
    from google.protobuf import json_format
    from tensorflow_model_analysis import __version__
    from tensorflow_model_analysis.proto import config_pb2

    models = _models(evaluation)
    run = config_pb2.EvalRun(
        eval_config=_eval_config(models, slices),
        version=__version__,
        model_locations={model.name: model.path for model in models},
    )
    atomic_write(folder / "eval_config.json", json_format.MessageToJson(run))
    records = _slice_records(models, slices, evaluation.rows)
    _write_records(folder / "metrics-00000-of-00001.tfrecord", records)


def _models(evaluation: Evaluation) -> list[_Model]:
    """Return the candidate, production if there is one, and the baseline if there is one."""
    models = [_Model(CANDIDATE, CANDIDATE, evaluation.metrics)]
    if production := evaluation.production:
        path = str(production.path)
        models.append(_Model(PRODUCTION, PRODUCTION, production.metrics, path))
    if baseline := evaluation.baseline:
        models.append(_Model(baseline.name, BASELINE, baseline.metrics))
    return models


def _eval_config(models: Sequence[_Model], slices: Sequence[Slice]) -> EvalConfig:
    from tensorflow_model_analysis.proto import config_pb2

    kinds = dict.fromkeys(one.kind for one in slices)
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(name=model.name, is_baseline=index == 1)
            for index, model in enumerate(models)
        ],
        slicing_specs=[
            config_pb2.SlicingSpec(),
            *(config_pb2.SlicingSpec(feature_keys=[kind]) for kind in kinds),
        ],
        metrics_specs=[
            config_pb2.MetricsSpec(
                model_names=[model.name for model in models],
                metrics=[config_pb2.MetricConfig(class_name="ExampleCount")],
            )
        ],
    )


def _slice_records(
    models: Sequence[_Model], slices: Sequence[Slice], rows: int
) -> Iterable[MetricsForSlice]:
    """Yield the metrics of every model and the differences: on all rows, then in each slice."""
    from tensorflow_model_analysis.metrics.metric_types import MetricKey
    from tensorflow_model_analysis.proto.metrics_for_slice_pb2 import BoundedValue
    from tensorflow_model_analysis.writers.metrics_plots_and_validations_writer import (
        convert_slice_metrics_to_proto,
    )

    def record(key: _SliceKey, rows: int, values: Sequence[Mapping[str, float]]) -> MetricsForSlice:
        metrics: dict[MetricKey, Any] = {}
        for index, (model, own) in enumerate(zip(models, values, strict=True)):
            metrics[MetricKey(COUNT, model.name)] = rows
            for name, value in own.items():
                interval = None if key else model.metrics[name].interval
                metrics[MetricKey(name, model.name)] = value
                if index == 1:
                    difference = MetricKey(name, models[0].name, is_diff=True)
                    metrics[difference] = values[0][name] - value
                if interval is not None:
                    metrics[MetricKey(name, model.name)] = BoundedValue(
                        value={"value": value},
                        lower_bound={"value": interval.low},
                        upper_bound={"value": interval.high},
                    )
        return convert_slice_metrics_to_proto((key, metrics), None)

    yield record(
        (), rows, [{name: one.value for name, one in model.metrics.items()} for model in models]
    )
    for one in slices:
        values = [one.scores[model.model] for model in models]
        yield record(((one.kind, one.value),), len(one.rows), values)


def _write_records(path: Path, records: Iterable[Message]) -> None:
    import tensorflow as tf

    with atomic_path(path) as temporary, tf.io.TFRecordWriter(str(temporary)) as writer:
        for record in records:
            writer.write(record.SerializeToString())
