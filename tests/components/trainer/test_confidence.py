"""The calibration of the confidence on rows of the eval split."""

import json

import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.serving import ConfidenceConfig
from regard.components.trainer import confidence
from regard.components.trainer.confidence import calibrate
from regard.core import events
from regard.models.calibration import LogisticModel


class Module:
    """Returns each source as its output; the feature is the number of its letters."""

    def __init__(self, longest=100):
        self.longest = longest
        self.batches = []

    def raw_inputs(self, row):
        return {"source": row[0].encode()}

    def raw_reference(self, row):
        return row[1]

    def features_function(self):
        return tf.function(self._features, [tf.TensorSpec([None], tf.string)], autograph=False)

    def _features(self, source):
        lengths = tf.strings.length(source)
        check = tf.debugging.Assert(tf.reduce_all(lengths <= self.longest), [lengths])
        with tf.control_dependencies([check]):
            values = tf.cast(lengths, tf.float32)
        values = tf.where(lengths == 1, np.nan, values)
        return {"text": tf.identity(source), "features": values[:, None]}


@pytest.fixture
def emitted(monkeypatch):
    records = []
    monkeypatch.setattr(events, "emit", lambda kind, **fields: records.append((kind, fields)))
    return records


def rows_of(good, bad):
    """Long rows whose output equals the reference, and short ones whose output does not."""
    rows = [(f"{number:020}", f"{number:020}") for number in range(good)]
    return rows + [(f"{number:04}", "x") for number in range(bad)]


def test_a_calibration(emitted):
    calibration = calibrate(Module(), rows_of(40, 60), ConfidenceConfig(good=90, max_drift=0.1))
    assert (calibration.metric, calibration.good, calibration.max_drift) == ("chrf", 90, 0.1)
    probabilities = calibration.model.probability(np.array([[20.0], [4.0]]))
    assert probabilities[0] > 0.9
    assert probabilities[1] < 0.1
    assert calibration.histogram == (60, 0, 0, 0, 0, 0, 0, 0, 0, 40)
    assert json.dumps(calibration.entry())
    assert [kind for kind, _ in emitted] == ["progress", "note"]


def test_rows_without_features_and_rejected_ones(emitted):
    rows = [*rows_of(20, 20), ("a", "a"), ("y" * 50, "y" * 50)]
    calibration = calibrate(
        Module(longest=30), rows, ConfidenceConfig(metric="exact_match", good=1)
    )
    assert sum(calibration.histogram) == 40
    assert calibration == calibrate(
        Module(), rows_of(20, 20), ConfidenceConfig(metric="exact_match", good=1)
    )


def test_the_best_reference_of_an_input_counts(emitted, monkeypatch):
    labels = []
    monkeypatch.setattr(
        confidence, "fit_logistic", lambda x, y: labels.append(y) or LogisticModel((0.0,), 0.0)
    )
    rows = [("abcde", "zzz"), ("abcde", "abcde"), ("fghij", "zzz")]
    calibrate(Module(), rows, ConfidenceConfig())
    assert labels[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("rows", [[], rows_of(1, 0), rows_of(5, 5), rows_of(40, 0), rows_of(0, 40)])
def test_too_few_rows_are_reported(emitted, rows):
    assert calibrate(Module(), rows, ConfidenceConfig()) is None
    assert [kind for kind, _ in emitted] == ["progress", "warning"]
