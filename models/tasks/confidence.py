"""The confidence of an exported model: a calibrated probability that its output is good."""

import dataclasses
import math

import tensorflow as tf

from regard.models.calibration import LogisticModel

# The output with the confidence.
CONFIDENCE = "confidence"
# Of a token on average. A search without a possible output has a score far below every real one.
_MIN_LOG_PROBABILITY = -50.0


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What turns the features of an output into its confidence.

    Attributes:
        model: the regression, fitted on the eval split.
        metric: the metric of a row that says whether its output is good.
        good: the lowest value of a good output.
        histogram: the rows of the eval split by their confidence, in bins of equal widths.
        max_drift: the limit of the drift from this histogram.
    """

    model: LogisticModel
    metric: str
    good: float
    histogram: tuple[int, ...]
    max_drift: float

    def entry(self) -> dict[str, object]:
        """Return the entry of the contract."""
        return {"output": CONFIDENCE, "metric": self.metric, "good": self.good} | {
            "histogram": list(self.histogram),
            "max_drift": self.max_drift,
        }

    def confidence(self, features: tf.Tensor) -> tf.Tensor:
        """Return the confidence ``[batch]`` of features ``[batch, 4]``; NaN for NaN."""
        weights = tf.constant(self.model.weights, tf.float32)
        return tf.sigmoid(tf.linalg.matvec(features, weights) + self.model.bias)


def output_features(
    log_probabilities: tf.Tensor, lengths: tf.Tensor, alignment: tf.Tensor, sizes: tf.Tensor
) -> tf.Tensor:
    """Return what the confidence of outputs depends on, float32 ``[batch, 4]``.

    The features are the mean log-probability of a token; the logarithm of the number of tokens;
    the mean entropy of a step's attention, as a share of that of uniform attention; and the
    coverage, the mean over the source of the attention that a position gets in all steps, at most
    1 (Tu et al. 2016, "Modeling Coverage for Neural Machine Translation", §3).

    Args:
        log_probabilities: of the outputs, ``[batch]``; NaN for a blank source, as its features.
        lengths: the numbers of tokens with EOS, ``[batch]``.
        alignment: ``[batch, target, source]``, 0 at padding.
        sizes: the numbers of source positions, ``[batch]``.
    """
    steps = tf.maximum(tf.cast(lengths, tf.float32), 1.0)
    sizes = tf.cast(sizes, tf.float32)
    logarithms = tf.math.log(tf.maximum(alignment, 1e-9))
    entropy = -tf.reduce_sum(alignment * logarithms, axis=[1, 2]) / steps
    coverage = tf.reduce_sum(tf.minimum(tf.reduce_sum(alignment, axis=1), 1.0), axis=1)
    features = [
        tf.maximum(log_probabilities / steps, _MIN_LOG_PROBABILITY),
        tf.math.log(steps),
        entropy / tf.math.log(tf.maximum(sizes, 2.0)),
        coverage / tf.maximum(sizes, 1.0),
    ]
    columns = tf.stack(features, axis=1)
    return tf.where(tf.math.is_nan(log_probabilities)[:, None], math.nan, columns)
