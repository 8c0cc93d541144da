"""The combiner of Regard's metrics in TensorFlow Model Analysis."""

import math

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.metrics import MetricsFilter
from tensorflow_model_analysis.metrics.metric_types import StandardMetricInputs

from regard.components.interop.tfma_metrics import CorpusMetric


def evaluate(metric, rows):
    """Return the value of a metric, and the number of rows without a reference."""
    (computation,) = CorpusMetric(metric).computations(model_names=[""])
    inputs = [
        StandardMetricInputs(
            label=label, prediction=np.array([prediction]), example_weight=np.array([1.0])
        )
        for label, prediction in rows
    ]
    accumulator = computation.combiner.create_accumulator()
    for row in inputs:
        accumulator = computation.combiner.add_input(accumulator, row)
    (value,) = computation.combiner.extract_output(accumulator).values()
    pipeline = beam.Pipeline(runner="FnApiRunner")
    pipeline | beam.Create(inputs) | beam.CombineGlobally(computation.combiner)
    counters = (
        pipeline.run()
        .metrics()
        .query(MetricsFilter().with_name("rows_without_reference"))["counters"]
    )
    return value, sum(counter.committed for counter in counters)


@pytest.mark.parametrize(
    ("metric", "rows", "expected"),
    [
        ("chrf", [(np.array(["a cat"]), "a cat"), (np.array([], object), "the dog")], 100.0),
        ("mse", [(None, 5.0), (np.array([2.0]), 4.0), (np.array([], "float32"), 9.0)], 4.0),
        ("mse", [(None, 5.0)], math.nan),
    ],
)
def test_rows_without_a_reference_are_left_out_and_counted(metric, rows, expected):
    missing = sum(label is None or not label.size for label, _ in rows)
    value, counted = evaluate(metric, rows)
    assert value == pytest.approx(expected, nan_ok=True)
    assert counted == missing
