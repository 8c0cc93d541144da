"""The evaluation as TensorFlow Model Analysis writes its own, for everything that reads those.

``tfma.load_eval_result(folder)`` gives the candidate's metrics, of all rows with intervals, and of
each slice; with ``model_name="production"`` those of the model in production.
``tfma.load_validation_result(folder)`` gives the blessing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.evaluator.blessing import Blessing, Verdict
from components.evaluator.scoring import Part
from components.files import atomic_path, atomic_write

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from tensorflow_model_analysis import EvalConfig, MetricsForSlice, SlicingSpec, ValidationResult

FOLDER = "tfma"
COUNT = "example_count"
# A slice by a feature's value, or all rows.
Key = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class _Model:
    """A model that was scored.

    Attributes:
        name: what it is called there.
        model: what it is called in the slices.
        metrics: of all rows, as in ``metrics.json``.
        path: where it lies, if that is known.
    """

    name: str
    model: str
    metrics: Mapping[str, Mapping[str, Any]]
    path: str = ""


def write(
    folder: Path,
    evaluation: Mapping[str, Any],
    parts: Sequence[Part],
    blessing: Blessing,
    config: Mapping[str, Any],
) -> None:
    """Writes the folder.

    Args:
        folder: which.
        evaluation: what ``metrics.json`` holds.
        parts: the slices.
        blessing: the decision.
        config: the ``evaluation`` section.
    """
    from google.protobuf import json_format
    from tensorflow_model_analysis import __version__
    from tensorflow_model_analysis.proto import config_pb2

    models = _models(evaluation)
    run = config_pb2.EvalRun(
        eval_config=_eval_config(models, parts, config),
        version=__version__,
        model_locations={one.name: one.path for one in models},
    )
    atomic_write(folder / "eval_config.json", json_format.MessageToJson(run))
    records = _metrics(models, parts, evaluation["rows"])
    _write_records(folder / "metrics-00000-of-00001.tfrecord", records)
    _write_records(folder / "validations.tfrecord", [_validation(blessing, models[0])])


def _models(evaluation: Mapping[str, Any]) -> list[_Model]:
    """The candidate, and what stands beside it: what it is compared with in the second place."""
    models = [_Model("candidate", "candidate", evaluation["metrics"])]
    if production := evaluation["production"]:
        path = str(production["path"])
        models.append(_Model("production", "production", production["metrics"], path))
    if baseline := evaluation["baseline"]:
        models.append(_Model(baseline["name"], "baseline", baseline["metrics"]))
    return models


def _eval_config(
    models: Sequence[_Model], parts: Sequence[Part], config: Mapping[str, Any]
) -> EvalConfig:
    """The models, slices and floors.

    That a model must not be significantly worse than another is no threshold as they are known
    there; it is in the validation alone.
    """
    from tensorflow_model_analysis.proto import config_pb2

    candidate = models[0].metrics
    spec = config_pb2.MetricsSpec(
        model_names=[one.name for one in models],
        metrics=[config_pb2.MetricConfig(class_name="ExampleCount")],
    )
    # A threshold without a slice would be one of every slice; that of all rows is one of its own.
    floors = {None: config.get("floors", {}), **config.get("slices", {}).get("floors", {})}
    for title, limits in floors.items():
        for name, limit in limits.items():
            spec.per_slice_thresholds[name].thresholds.add(
                slicing_specs=[_slicing_spec(title)], threshold=_threshold(candidate[name], limit)
            )
    kinds = dict.fromkeys(part.slice.kind for part in parts)
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(name=one.name, is_baseline=at == 1)
            for at, one in enumerate(models)
        ],
        slicing_specs=[config_pb2.SlicingSpec(), *map(_slicing_spec, kinds)],
        metrics_specs=[spec],
    )


def _metrics(
    models: Sequence[_Model], parts: Sequence[Part], rows: int
) -> Iterable[MetricsForSlice]:
    """Of all rows with intervals, then of each slice; each model's, and the differences."""
    from tensorflow_model_analysis.metrics.metric_types import MetricKey
    from tensorflow_model_analysis.proto.metrics_for_slice_pb2 import BoundedValue
    from tensorflow_model_analysis.writers.metrics_plots_and_validations_writer import (
        convert_slice_metrics_to_proto,
    )

    def record(key: Key, rows: int, values: Sequence[Mapping[str, float]]) -> MetricsForSlice:
        found: dict[MetricKey, Any] = {}
        for at, (one, metrics) in enumerate(zip(models, values, strict=True)):
            found[MetricKey(COUNT, one.name)] = rows
            for name, value in metrics.items():
                found[MetricKey(name, one.name)] = value
                if at == 1:
                    difference = values[0][name] - value
                    found[MetricKey(name, models[0].name, is_diff=True)] = difference
                sure = None if key else one.metrics[name]["interval"]
                if sure is not None:
                    found[MetricKey(name, one.name)] = BoundedValue(
                        value={"value": value},
                        lower_bound={"value": sure["low"]},
                        upper_bound={"value": sure["high"]},
                    )
        return convert_slice_metrics_to_proto((key, found), None)

    whole = [{name: metric["value"] for name, metric in one.metrics.items()} for one in models]
    yield record((), rows, whole)
    for part in parts:
        key = ((part.slice.kind, part.slice.value),)
        yield record(key, len(part.slice.rows), [part.values[one.model] for one in models])


def _validation(blessing: Blessing, candidate: _Model) -> ValidationResult:
    """The blessing with a failure for each verdict against the model, in the slice that it is of.

    Where there was nothing to hold the model against, it is stamped without a look.
    """
    from tensorflow_model_analysis.proto import validation_result_pb2
    from tensorflow_model_analysis.slicer.slicer_lib import serialize_slice_key

    result = validation_result_pb2.ValidationResult(
        validation_ok=blessing.blessed, rubber_stamp=not blessing.reasons
    )
    seen = [one for one in blessing.reasons if one.rows is not None or one.slice is None]
    for title in dict.fromkeys(verdict.slice for verdict in seen):
        result.validation_details.slicing_details.add(
            slicing_spec=_slicing_spec(title), num_matching_slices=1
        )
        against = [one for one in seen if one.slice == title and not one.passed]
        if against:
            failures = result.metric_validations_per_slice.add(
                slice_key=serialize_slice_key(_key(title))
            ).failures
            failures.extend(_failure(verdict, candidate) for verdict in against)
    missing = [one.slice for one in blessing.reasons if one not in seen]
    result.missing_slices.extend(map(_slicing_spec, missing))
    return result


def _failure(verdict: Verdict, candidate: _Model) -> Message:
    from tensorflow_model_analysis.metrics.metric_types import MetricKey
    from tensorflow_model_analysis.proto import validation_result_pb2

    failure = validation_result_pb2.ValidationFailure(message=verdict.reason)
    if verdict.metric is not None:
        key = MetricKey(verdict.metric, candidate.name)
        failure.metric_key.CopyFrom(key.to_proto())
    if verdict.metric is not None and verdict.value is not None:
        failure.metric_value.double_value.value = verdict.value
    if verdict.metric is not None and verdict.bound is not None:
        threshold = _threshold(candidate.metrics[verdict.metric], verdict.bound)
        failure.metric_threshold.CopyFrom(threshold)
    return failure


def _threshold(metric: Mapping[str, Any], limit: float) -> Message:
    from tensorflow_model_analysis.proto import config_pb2

    side = "lower_bound" if metric["higher_is_better"] else "upper_bound"
    value = config_pb2.GenericValueThreshold(**{side: {"value": limit}})
    return config_pb2.MetricThreshold(value_threshold=value)


def _slicing_spec(title: str | None) -> SlicingSpec:
    """A slice ``domain=news``, all slices ``domain``, or of None all rows."""
    from tensorflow_model_analysis.proto import config_pb2

    kind, found, value = (title or "").partition("=")
    if found:
        return config_pb2.SlicingSpec(feature_values={kind: value})
    return config_pb2.SlicingSpec(feature_keys=[kind] if kind else [])


def _key(title: str | None) -> Key:
    if title is None:
        return ()
    kind, _, value = title.partition("=")
    return ((kind, value),)


def _write_records(path: Path, records: Iterable[Message]) -> None:
    import tensorflow as tf

    with atomic_path(path) as temporary, tf.io.TFRecordWriter(str(temporary)) as writer:
        for record in records:
            writer.write(record.SerializeToString())
