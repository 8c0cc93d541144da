"""How probable a model finds each piece of an answer that it is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from models.metrics.likelihood import CUT, PIECES, SCORE
from serving.saved_model import Answer, ServedModel

# The output of any task's models with the logarithm of each piece's own probability.
_SUFFIX = "scores"


@dataclasses.dataclass(frozen=True)
class Likelihood:
    """The log-probability of the references, how many pieces they have, and how many were cut."""

    def beside(
        self,
        model: ServedModel,
        answers: Sequence[Answer],
        rows: Sequence[Mapping[str, Any]],
        given: Sequence[Any],
    ) -> list[Answer]:
        """The answers with how probable the model finds others to the same rows.

        A model that scores no given answer piece by piece leaves it out.

        Args:
            model: it is asked.
            answers: its own.
            rows: the inputs of each, by name.
            given: the other answers.
        """
        contract = model.contract
        signature = contract["scored"]
        told = contract["signatures"].get(signature, {"outputs": {}, "inputs": []})
        name = next((output for output in told["outputs"] if output.endswith(_SUFFIX)), "")
        if not name:
            return list(answers)
        asked = [
            {entry["name"]: row.get(entry["name"], answer) for entry in told["inputs"]}
            for row, answer in zip(rows, given, strict=True)
        ]
        cut = f"{name.removesuffix(_SUFFIX)}cut"
        found = [shown.outputs for shown in model.ask(signature, asked)]
        return [
            answer.extended(
                {SCORE: float(shown[name].sum()), PIECES: len(shown[name]), CUT: shown[cut]},
                {SCORE: [], PIECES: [], CUT: []},
            )
            for answer, shown in zip(answers, found, strict=True)
        ]
