"""The calibration of a model's confidence on the eval split, with its final weights."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from regard.components.settings.serving import ConfidenceConfig
from regard.components.settings.trainer import NODE
from regard.core import events
from regard.models import metrics
from regard.models.calibration import BINS, MIN_ROWS, bin_numbers, fit_logistic
from regard.models.tasks.confidence import Calibration
from regard.models.tasks.served_model import Row
from regard.models.tasks.served_text_output import ServedTextOutput

_BATCH = 64


def calibrate(
    module: ServedTextOutput, rows: Iterable[Row], config: ConfidenceConfig
) -> Calibration | None:
    """Decode rows, and fit the probability that an output is good.

    Rows with equal inputs are one row with several references, of which the best one counts.

    Args:
        module: what is exported, with the final weights.
        rows: rows of the eval split.
        config: what a good output is.

    Returns:
        The calibration; None, with a warning, if too few outputs are good, or too few are not.
    """
    references: dict[bytes, list[str]] = {}
    for row in rows:
        (source,) = module.raw_inputs(row).values()
        references.setdefault(source, []).append(module.raw_reference(row))
    sources = sorted(references, key=len)  # rows of similar lengths share a batch
    events.emit("progress", node=NODE, text=f"calibrating on {len(sources):,} rows of eval")
    predict = module.features_function()
    texts: list[str] = []
    features: list[np.ndarray] = []
    used: list[list[str]] = []
    for start in range(0, len(sources), _BATCH):
        for source, text, values in _predict(predict, sources[start : start + _BATCH]):
            used.append(references[source])
            texts.append(text)
            features.append(values)
    is_good, inputs = np.zeros(0), np.zeros((0, 1))
    if texts:
        scorer = metrics.scorers([config.metric], metrics.Rows(texts, used))[config.metric]
        is_good = (scorer.row_values() >= config.good).astype(np.float64)
        inputs = np.stack(features).astype(np.float64)
    model = fit_logistic(inputs, is_good)
    if model is None:
        events.emit(
            "warning",
            node=NODE,
            text=f"The model is exported without confidence: {int(is_good.sum()):,} of "
            f"{len(is_good):,} outputs of the eval split have {config.metric} of at least "
            f"{config.good:g}, but {MIN_ROWS} good and {MIN_ROWS} other rows are needed. "
            "Change serving.confidence.good, or use a larger eval split",
        )
        return None
    confidence = model.probability(inputs[np.isfinite(inputs).all(axis=1)])
    histogram = np.bincount(bin_numbers(confidence), minlength=BINS)
    text = f"confidence: {is_good.mean():.0%} of {len(is_good):,} rows of eval have "
    events.emit("note", node=NODE, text=f"{text}{config.metric} of at least {config.good:g}")
    return Calibration(
        model, config.metric, config.good, tuple(histogram.tolist()), config.max_drift
    )


def _predict(
    predict: Callable[[Any], Mapping[str, Any]], sources: Sequence[bytes]
) -> Iterable[tuple[bytes, str, np.ndarray]]:
    """Yield each source that is not too long for the model, with its output and features."""
    try:
        outputs = predict(tf.constant(sources, tf.string))
    except tf.errors.InvalidArgumentError:
        middle = len(sources) // 2
        for part in (sources[:middle], sources[middle:]) if middle else ():
            yield from _predict(predict, part)
        return
    texts = [text.decode(errors="replace") for text in outputs["text"].numpy()]
    yield from zip(sources, texts, outputs["features"].numpy(), strict=True)
