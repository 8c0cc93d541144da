"""Forced decoding: the attention and the score that a model gives the references."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.models.reference_columns import ALIGNMENT, CUT, LENGTH, SCORE, SOURCE, TARGET
from regard.serving.attention_heads import add_outputs
from regard.serving.contract import Contract
from regard.serving.saved_model import Model, Prediction
from regard.serving.session import SessionError

if TYPE_CHECKING:
    import numpy as np

# The outputs with attention of a signature that scores given outputs.
_ATTENTION = {"alignment", "source_pieces", "target_pieces"}
_DIMENSIONS = {
    ALIGNMENT: ["target_length", "source_length"],
    SOURCE: ["source_length"],
    TARGET: ["target_length"],
}
KEY = "evaluation.alignment"
# Part of the signature's error message if the attention of a batch is too large.
_TOO_LARGE = "fewer or shorter rows"
# The suffix of every task's output with the log-probabilities of single tokens.
_TOKEN_SCORES = "scores"
InputRow = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class ReferenceAttention:
    """The attention weights of the references.

    Attributes:
        layer: the decoder layer of a Transformer, from 1; None: the model's default.
        head: the head in that layer, from 1; None: the mean of all heads.
    """

    layer: int | None = None
    head: int | None = None

    def __str__(self) -> str:
        layer = f"layer {self.layer}"
        return layer if self.head is None else f"{layer} with a head {self.head}"

    def extend(
        self,
        model: Model,
        predictions: Sequence[Prediction],
        rows: Sequence[InputRow],
        references: Sequence[Any],
    ) -> list[Prediction]:
        """Add the attention weights and the tokens of the references to the predictions.

        Predictions of a model without attention over tokens are returned unchanged, unless a layer
        is required.

        Args:
            model: the model.
            predictions: its predictions.
            rows: the inputs of each row by name.
            references: one reference per row.

        Raises:
            UserError: the model has no such layer or head.
        """
        if self.layer is None:
            signature, available = _scored_outputs(model.contract)
            if not set(available) >= _ATTENTION:
                return list(predictions)
            scored = model.predict(signature, add_outputs(model, signature, rows, references))
            alignments = [row.outputs["alignment"] for row in scored]
        else:
            signature, weights = _heads_signature(model.contract)
            scored = _predict_heads(
                model, signature, add_outputs(model, signature, rows, references)
            )
            alignments = [self._select_head(row.outputs[weights], self.layer) for row in scored]
        return [
            prediction.with_outputs(
                {
                    ALIGNMENT: alignment,
                    SOURCE: reference.outputs["source_pieces"],
                    TARGET: reference.outputs["target_pieces"],
                },
                _DIMENSIONS,
            )
            for prediction, reference, alignment in zip(
                predictions, scored, alignments, strict=True
            )
        ]

    def _select_head(self, weights: np.ndarray, number: int) -> np.ndarray:
        """Return ``[target, source]`` of a layer from ``[layers, heads, target, source]``."""
        layer = weights[_index("layer", number, len(weights))]
        if self.head is None:
            return layer.mean(axis=0)
        return layer[_index("head", self.head, len(layer))]


@dataclasses.dataclass(frozen=True)
class ReferenceScores:
    """The log-probability of the references, their tokens, and the truncated tokens."""

    def extend(
        self,
        model: Model,
        predictions: Sequence[Prediction],
        rows: Sequence[InputRow],
        references: Sequence[Any],
    ) -> list[Prediction]:
        """Add the scores of the references to the predictions.

        Predictions of a model that does not score single tokens are returned unchanged.

        Args:
            model: the model.
            predictions: its predictions.
            rows: the inputs of each row by name.
            references: one reference per row.
        """
        signature, available = _scored_outputs(model.contract)
        name = next((output for output in available if output.endswith(_TOKEN_SCORES)), "")
        if not name:
            return list(predictions)
        cut = f"{name.removesuffix(_TOKEN_SCORES)}cut"
        scored = model.predict(signature, add_outputs(model, signature, rows, references))
        return [
            prediction.with_outputs(
                {
                    SCORE: float(reference.outputs[name].sum()),
                    LENGTH: len(reference.outputs[name]),
                    CUT: reference.outputs[cut],
                },
                {SCORE: [], LENGTH: [], CUT: []},
            )
            for prediction, reference in zip(predictions, scored, strict=True)
        ]


ReferenceOutput = ReferenceAttention | ReferenceScores


def _scored_outputs(contract: Contract) -> tuple[str, Iterable[str]]:
    """Return the signature that scores given outputs, and its outputs; empty without one."""
    signature = contract["scored"] or ""
    entry = contract["signatures"].get(signature)
    return signature, entry["outputs"] if entry else ()


def _heads_signature(contract: Contract) -> tuple[str, str]:
    """Return the signature with the weights of every head, and its output with those weights."""
    axes = ("target_pieces", "source_pieces")
    if heads := contract.get("heads"):
        for entry in heads["looks"]:
            if (entry["rows"], entry["columns"]) == axes:
                return heads["signature"], entry["weights"]
    message = "The decoder of this model has no layers of attention heads over a text"
    remedy = "Remove the key: only Transformer decoders have such layers."
    raise UserError(message, f"{KEY}.layer", remedy)


def _index(key: str, number: int, count: int) -> int:
    if number > count:
        message = f"There is no {key} {number}; the model has 1 to {count}"
        remedy = f"Use a number from 1 to {count}, or null."
        raise UserError(message, f"{KEY}.{key}", remedy)
    return number - 1


def _predict_heads(model: Model, signature: str, requests: Sequence[InputRow]) -> list[Prediction]:
    """Run all rows in one batch, or in halves if the batch has too many weights."""
    try:
        return model.predict(signature, requests)
    except SessionError as error:
        if _TOO_LARGE not in str(error):
            raise
        if len(requests) == 1:
            message = "A row is too long for the attention of all heads"
            remedy = "Use null, for which the model returns the attention of one layer only."
            raise UserError(message, f"{KEY}.layer", remedy) from None
    half = len(requests) // 2
    return [
        *_predict_heads(model, signature, requests[:half]),
        *_predict_heads(model, signature, requests[half:]),
    ]
