"""Regard's metrics for TensorFlow Model Analysis, with which TFX's Evaluator computes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_text  # noqa: F401 - the operations of a model's tokenizers
from apache_beam.metrics import Metrics
from tensorflow_model_analysis.metrics import metric_types, metric_util

from regard.models.metrics import METRICS, MetricOptions, Rows
from regard.models.metrics.base import Statistics

# The sum of the statistics of rows, and one of the rows as hypothesis and references.
Accumulator = tuple[Any, tuple[Any, list[Any]]]


class CorpusMetric(metric_types.Metric):
    """A metric of a whole corpus that is computed from sums over its rows.

    Args:
        metric: the metric, a key of ``METRICS``.
        name: the name in the results; None: that of the metric.
        options: the fields of ``MetricOptions``.
    """

    def __init__(self, metric: str, name: str | None = None, **options: Any):
        super().__init__(_computations, metric=metric, name=name or metric, options=options)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> CorpusMetric:
        """Create the metric from the JSON of an ``EvalConfig``."""
        return cls(**config)


metric_types.register_metric(CorpusMetric)


def _computations(
    metric: str,
    name: str,
    options: Mapping[str, Any],
    eval_config: Any = None,
    model_names: list[str] | None = None,
    output_names: list[str] | None = None,
) -> list[metric_types.MetricComputation]:
    keys = [
        metric_types.MetricKey(name=name, model_name=model, output_name=output)
        for model in model_names or [""]
        for output in output_names or [""]
    ]
    return [
        metric_types.MetricComputation(
            keys=[key],
            preprocessors=None,
            combiner=_CorpusCombiner(metric, dict(options), key, eval_config),
        )
        for key in keys
    ]


class _CorpusCombiner(beam.CombineFn):
    """Sums the statistics of rows, as Regard's Evaluator does.

    Rows without a reference are left out; Beam's counter ``rows_without_reference`` has their
    number.
    """

    def __init__(self, metric: str, options: Mapping[str, Any], key: Any, eval_config: Any):
        self._metric, self._options = metric, MetricOptions(**options)
        self._key, self._eval_config = key, eval_config
        self._skipped = Metrics.counter("regard", "rows_without_reference")

    def create_accumulator(self) -> Accumulator | None:
        return None

    def add_input(self, accumulator: Accumulator | None, element: Any) -> Accumulator | None:
        triples = metric_util.to_label_prediction_example_weight(
            element,
            eval_config=self._eval_config,
            model_name=self._key.model_name,
            output_name=self._key.output_name,
            flatten=False,
            squeeze=False,
            allow_none=True,
        )
        for labels, predictions, _ in triples:
            references = _values(labels)
            if not references:
                self._skipped.inc()
                continue
            (hypothesis,) = _values(predictions)
            row = hypothesis, references
            new = self._statistics(row).rows.sum(axis=0), row
            accumulator = self.merge_accumulators([accumulator, new])
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Accumulator | None]) -> Accumulator | None:
        filled = [accumulator for accumulator in accumulators if accumulator is not None]
        if not filled:
            return None
        return np.sum([total for total, _ in filled], axis=0), filled[0][1]

    def extract_output(self, accumulator: Accumulator | None) -> dict[Any, float]:
        if accumulator is None:
            return {self._key: math.nan}
        total, row = accumulator
        return {self._key: self._statistics(row).value(total)}

    def _statistics(self, row: tuple[Any, list[Any]]) -> Statistics:
        hypothesis, references = row
        return METRICS[self._metric].compute(Rows([hypothesis], [references]), self._options)


def _values(array: Any) -> list[Any]:
    """Return the texts or numbers of an array of any shape."""
    values = np.asarray(array).ravel().tolist()
    return [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values
    ]
