"""Where a model looks for each piece of an answer that it is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from components.errors import UserError
from models.metrics.aligning import ALIGNMENT, SOURCE, TARGET
from serving.saved_model import Answer, ServedModel

# What a model shows of a given answer, and what it is called beside its own answer.
SHOWN = {"alignment": ALIGNMENT, "source_pieces": SOURCE, "target_pieces": TARGET}
_DIMENSIONS = {
    ALIGNMENT: ["target_length", "source_length"],
    SOURCE: ["source_length"],
    TARGET: ["target_length"],
}
KEY = "evaluation.alignment"
# How the signature says that so many rows have too many weights for one answer.
_TOO_MANY = "ask fewer or shorter rows"


@dataclasses.dataclass(frozen=True)
class Looks:
    """Whose weights are shown.

    Attributes:
        layer: the layer of a Transformer's decoder, from 1; None: what the model itself shows.
        head: its head, from 1; None: the mean of all.
    """

    layer: int | None = None
    head: int | None = None

    def __str__(self) -> str:
        layer = f"layer {self.layer}"
        return layer if self.head is None else f"{layer} with a head {self.head}"

    def beside(
        self,
        model: ServedModel,
        answers: Sequence[Answer],
        rows: Sequence[Mapping[str, Any]],
        given: Sequence[Any],
    ) -> list[Answer]:
        """The answers with what the model shows of others to the same rows.

        A model that shows nothing of pieces leaves it out, unless a layer is wanted.

        Args:
            model: it is asked.
            answers: its own.
            rows: the inputs of each, by name.
            given: the other answers.

        Raises:
            UserError: the model has no such layer or head.
        """
        contract = model.contract
        if self.layer is None:
            signature = contract["scored"]
            if not set(SHOWN) <= set(_outputs(contract, signature)):
                return list(answers)
        else:
            signature = _of_heads(contract)
        entries = contract["signatures"][signature]["inputs"]
        asked = [
            {entry["name"]: row.get(entry["name"], answer) for entry in entries}
            for row, answer in zip(rows, given, strict=True)
        ]
        if self.layer is None:
            shown = [dict(found.outputs) for found in model.ask(signature, asked)]
        else:
            shown = [self._chosen(found) for found in _ask_heads(model, signature, asked)]
        return [
            answer.extended({called: found[name] for name, called in SHOWN.items()}, _DIMENSIONS)
            for answer, found in zip(answers, shown, strict=True)
        ]

    def _chosen(self, found: Answer) -> dict[str, Any]:
        """The outputs of `SHOWN`, of the chosen layer and head."""
        weights = found.outputs[_cross(found.contract["heads"]["looks"])]
        assert self.layer is not None
        layer = weights[_index("layer", self.layer, len(weights))]
        chosen = (
            layer.mean(axis=0)
            if self.head is None
            else layer[_index("head", self.head, len(layer))]
        )
        return {**found.outputs, "alignment": chosen}


def _of_heads(contract: Mapping[str, Any]) -> str:
    """The signature with the weights of every head."""
    told = contract.get("heads")
    if not told or not _cross(told["looks"]):
        raise UserError(
            "the decoder of this model has no layers with heads that look at a text",
            where=f"{KEY}.layer",
            remedy="Only Transformer decoders have them; for others leave it out.",
        )
    return told["signature"]


def _cross(looks: Sequence[Mapping[str, str]]) -> str:
    """The output with the weights of target pieces on source pieces; empty where there is none."""
    sides = ("target_pieces", "source_pieces")
    found = (look["weights"] for look in looks if (look["rows"], look["columns"]) == sides)
    return next(found, "")


def _index(what: str, number: int, count: int) -> int:
    if number > count:
        raise UserError(
            f"there is no {what} {number}; the model has 1 to {count}",
            where=f"{KEY}.{what}",
            remedy=f"Give one of its {count}, or null.",
        )
    return number - 1


def _ask_heads(
    model: ServedModel, signature: str, asked: Sequence[Mapping[str, Any]]
) -> list[Answer]:
    """Asks all rows at once, or fewer where all have more weights than the signature gives."""
    import tensorflow as tf

    try:
        return model.ask(signature, asked)
    except tf.errors.InvalidArgumentError as error:
        if _TOO_MANY not in str(error):
            raise
        if len(asked) == 1:
            raise UserError(
                "a row is too long for the weights of all heads",
                where=f"{KEY}.layer",
                remedy="Use null: what the model shows by default is the weights of one layer.",
            ) from None
    half = len(asked) // 2
    return [
        *_ask_heads(model, signature, asked[:half]),
        *_ask_heads(model, signature, asked[half:]),
    ]


def _outputs(contract: Mapping[str, Any], signature: str) -> Mapping[str, Any]:
    return contract["signatures"].get(signature, {}).get("outputs", {})
