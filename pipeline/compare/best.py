"""Which model of a comparison is significantly the best in a metric."""

import math
from collections.abc import Sequence
from pathlib import Path

from regard.components.common import prediction_table
from regard.components.evaluator.predictions import read_rows
from regard.components.evaluator.scoring import ModelScores
from regard.components.settings.evaluation import EvaluationConfig
from regard.models.metrics import needs_attention
from regard.models.metrics.significance import holm
from regard.pipeline.compare.results import ModelResult

LEVEL = 0.05


def best_models(models: Sequence[ModelResult], config: EvaluationConfig) -> dict[str, str]:
    """Return the label of the model that is significantly the best, by metric.

    It is tested against each other model by randomization on the rows of the test split, and the
    p-values of a metric are adjusted by Holm's method. Models that differ only in the seed are not
    tested against each other, but all of them must be better than the others. Metrics of commands
    are not tested: the commands would run again.

    Args:
        models: all models; those without results are ignored.
        config: the ``evaluation`` section that they share.
    """
    models = [model for model in models if model.metrics]
    tables = [Path(model.predictions or "", prediction_table.CANDIDATE) for model in models]
    has_rows = len({model.data for model in models}) == 1 and all(map(Path.is_file, tables))
    if len(models) < 2 or not has_rows or not config.samples:
        return {}
    names = [name for name in config.metrics if name not in config.external]
    tested = config.model_copy(update={"metrics": tuple(names)})
    contract = prediction_table.read_summary(tables[0].parent)["contract"]
    with_attention = any(map(needs_attention, names))
    rows = [read_rows(table, contract, with_attention) for table in tables]
    scores = {
        model.label: ModelScores(model_rows, tested)
        for model, model_rows in zip(models, rows, strict=True)
    }
    best: dict[str, str] = {}
    for name in names:
        sign = 1 if models[0].metrics[name].higher_is_better else -1
        values = {model.label: sign * model.metrics[name].value for model in models}
        first = max(models, key=lambda model: values[model.label])
        others = [model.label for model in models if model.recipe != first.recipe]
        lowest = min(values[label] for label in values if label not in others)
        if others and lowest > max(values[label] for label in others):
            # With fewer samples, the lowest adjusted p-value would exceed the level.
            samples = max(config.samples, math.ceil(2 * len(others) / LEVEL))
            p_values = []
            for label in others:
                p_value = scores[first.label].p_value(scores[label], name, "randomization", samples)
                p_values.append(1.0 if p_value is None else p_value)
            if max(holm(p_values)) < LEVEL:
                best[name] = first.label
    return best
