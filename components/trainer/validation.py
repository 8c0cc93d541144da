"""A metric of the eval split while training, from answers that are really found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from components.trainer.data import Batches
from components.trainer.evaluating import Decode
from models import metrics
from models.tasks.base import Answering, Task
from models.trained import TrainedModel

LOSS = "loss"  # what evaluations are compared by where it is no metric


def decoder(
    held_out: Batches,
    task: Task,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, Any],
    pieces: Mapping[str, int],
    objective: str = LOSS,
) -> Decode | None:
    """What measures a model by ``early_stop.metric``, or by the task's first metric.

    None where nobody asks for it. The answers are those of a model in float32, as the exported
    one is, found by the task's quick search. References are the eval split's as they are trained
    on, so what a tokenizer normalises is normalised on both sides: compare the values of one
    training, not of two corpora.

    Args:
        held_out: the eval split.
        task: says how a model's answers are found.
        config: the YAML's sections ``model``, ``training`` and ``search``.
        tokenizers: one a text feature.
        pieces: the size of each text feature's vocabulary.
        objective: a further metric, or the loss, which is measured anyway.
    """
    training = config["training"]
    asked = ((training["early_stop"] or {}).get("metric", LOSS), objective)
    names = [name for name in dict.fromkeys(asked) if name != LOSS]
    if not names and not training["validation_rows"]:
        return None
    names = names or [task.description.metrics[0]]
    rows = dataclasses.replace(held_out, most=training["validation_rows"], fixed_shapes=False)
    batches = rows.epoch().cache()
    twin: TrainedModel | None = None
    answer: Answering | None = None

    def decode(model: TrainedModel) -> dict[str, float]:
        nonlocal twin, answer
        if twin is None:
            exact = training["precision"] == "float32"
            settings = {**training, "precision": "float32"}
            twin = model if exact else task.build(config["model"], settings, pieces)
        if answer is None:
            answer = task.answering(twin, tokenizers, config)
        if twin is not model:
            twin.set_weights(model.get_weights())
        found: list[Any] = []
        wanted: list[list[Any]] = []
        for batch in batches:
            hypotheses, references = answer(batch)
            found += hypotheses
            wanted += references
        options = {"tokenize": training["validation_tokenize"], "lowercase": False}
        values = metrics.compute(names, metrics.Rows(found, wanted), options)
        return {name: round(metric.value, 4) for name, metric in zip(names, values, strict=True)}

    return decode
