"""BLEU of the eval split while training, from answers that are really decoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras

from components.trainer.data import Batches
from components.trainer.evaluating import Decode
from models import metrics
from models.tasks.base import Task


def decoder(
    held_out: Batches,
    task: Task,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, Any],
    pieces: Mapping[str, int],
) -> Decode | None:
    """What measures a model's ``bleu``, or None where nobody asks for it.

    The answers are those of a model in float32, as the exported one is, found by the task's
    quick search. The references are the eval split's pieces as text, so what a tokenizer
    normalises is normalised on both sides: compare the values of one training, not of two
    corpora.

    Args:
        held_out: the eval split.
        task: says how a model's answers are found.
        config: the YAML's sections ``model``, ``training`` and ``search``.
        tokenizers: one a text feature.
        pieces: the size of each text feature's vocabulary.
    """
    training = config["training"]
    by_bleu = (training["early_stop"] or {}).get("metric") == "bleu"
    if not training["validation_rows"] and not by_bleu:
        return None
    rows = dataclasses.replace(held_out, most=training["validation_rows"], fixed_shapes=False)
    batches = rows.epoch().cache()
    twin: keras.Model | None = None
    answer: Any = None

    def decode(model: keras.Model) -> dict[str, float]:
        nonlocal twin, answer
        if twin is None:
            exact = training["precision"] == "float32"
            settings = {**training, "precision": "float32"}
            twin = model if exact else task.build(config["model"], settings, pieces)
            answer = task.validation(twin, tokenizers, config["search"])
        if twin is not model:
            twin.set_weights(model.get_weights())
        found: list[str] = []
        wanted: list[str] = []
        for batch in batches:
            hypotheses, references = answer(batch)
            found += hypotheses
            wanted += references
        (bleu,) = metrics.compute(["bleu"], found, wanted, tokenize=training["validation_tokenize"])
        return {"bleu": round(bleu.value, 4)}

    return decode
