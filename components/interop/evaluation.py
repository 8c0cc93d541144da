"""The configuration of TFX's Evaluator for a model of Regard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tensorflow_model_analysis.proto import config_pb2

from regard.components.interop.tfma_metrics import CorpusMetric
from regard.core.errors import UserError
from regard.core.features import Kind
from regard.models.metrics import MetricOptions, MetricSpec, Rows, get_metric
from regard.models.tasks import describe
from regard.models.tasks.served_model import EXAMPLES_SIGNATURE


def eval_config(
    task: str,
    metrics: Sequence[str] = ("bleu", "chrf"),
    thresholds: Mapping[str, float] | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> config_pb2.EvalConfig:
    """Return a ``tfma.EvalConfig`` for TFX's Evaluator, with Regard's metrics.

    The model runs on the raw examples by its signature ``serving_examples``, and its output is
    compared with the reference of the task.

    Args:
        task: the task.
        metrics: metrics that are computed from hypotheses and references alone.
        thresholds: for a metric the value that a model must reach to be blessed; of a metric such
            as ``ter``, the value that it must not exceed.
        tokenize: sacreBLEU's tokenizer for BLEU.
        lowercase: whether metrics of texts ignore case.

    Raises:
        UserError: a metric is unknown, does not fit the task, or cannot be computed by TFX's
            Evaluator; or a threshold is not one of a metric.
    """
    thresholds = thresholds or {}
    if others := sorted(thresholds.keys() - set(metrics)):
        message = f"There is a threshold of {others[0]}, which is not one of the metrics."
        raise UserError(message, "thresholds", f"Add {others[0]} to `metrics`.")
    described, configs = describe(task), []
    options = MetricOptions(tokenize, lowercase)
    for name in metrics:
        spec = _check_metric(name, described.output_kind, options)
        config = config_pb2.MetricConfig(
            class_name=CorpusMetric.__name__,
            module=CorpusMetric.__module__,
            config=json.dumps({"metric": name, "tokenize": tokenize, "lowercase": lowercase}),
        )
        if name in thresholds:
            config.threshold.CopyFrom(_threshold(spec, thresholds[name]))
        configs.append(config)
    model = config_pb2.ModelSpec(
        signature_name=EXAMPLES_SIGNATURE,
        label_key=described.reference.name,
        prediction_key=described.output,
    )
    return config_pb2.EvalConfig(
        model_specs=[model],
        slicing_specs=[config_pb2.SlicingSpec()],
        metrics_specs=[config_pb2.MetricsSpec(metrics=configs)],
    )


def _check_metric(name: str, kind: Kind, options: MetricOptions) -> MetricSpec:
    """Return a metric that is a function of sums over hypotheses and references."""
    sample = 1.0 if kind.is_number else "a"
    try:
        spec = get_metric(name, kind)
        is_sum = not (spec.needs_columns or spec.needs_attention) and (
            kind.is_text or kind.is_number
        )
        is_sum = is_sum and spec.compute(Rows([sample], [[sample]]), options).rows is not None
    except ValueError as error:
        raise UserError(str(error), "metrics") from error
    if not is_sum:
        message = f"{name} is not a function of sums over single outputs and references."
        raise UserError(message, "metrics", "Compute it with Regard's Evaluator.")
    return spec


def _threshold(spec: MetricSpec, value: float) -> config_pb2.MetricThreshold:
    bound = "lower_bound" if spec.higher_is_better else "upper_bound"
    limits = config_pb2.GenericValueThreshold(**{bound: {"value": value}})
    return config_pb2.MetricThreshold(value_threshold=limits)
