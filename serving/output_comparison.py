"""Compare two outputs of a model for the same row, within tolerances."""

import math
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from regard.serving.contract import Contract

Outputs = Mapping[str, Any]


class Tolerances(TypedDict):
    """Allowed differences.

    A number may differ by ``absolute`` or ``relative``, whichever is larger; in an array ``array``
    replaces ``absolute``. ``ties`` is the share of rows that may have another hypothesis of equal
    score.
    """

    absolute: float
    relative: float
    array: float
    ties: float


class OutputComparison:
    """Compares the outputs of one model.

    Args:
        contract: the model's contract.
        tolerances: the allowed differences.
    """

    def __init__(self, contract: Contract, tolerances: Tolerances):
        self._answer, self._score = contract["answer"], contract["score"] or ""
        self._tolerances = tolerances

    def find_invalid(self, outputs: Outputs) -> list[str]:
        """Describe a prediction or score that is not finite; an empty text needs no score."""
        answer = outputs.get(self._answer)
        if isinstance(answer, str) and not answer:
            return []
        return [
            f"the {name} is {outputs[name]}"
            for name in dict.fromkeys((self._score, self._answer))
            if isinstance(outputs.get(name), float) and not math.isfinite(outputs[name])
        ]

    def compare(self, actual: Outputs, expected: Outputs) -> tuple[str, bool]:
        """Compare the outputs that both have.

        Returns:
            The first difference in words, or an empty text; and whether it is a tie, that is,
            whether the two hypotheses have equal scores, so that rounding decides.
        """
        first = [
            name for name in (self._answer, self._score) if name in actual and name in expected
        ]
        others = [name for name in actual if name in expected and name not in first]
        for name in first + others:
            text = self._compare_output(name, actual, expected)
            if text:
                return text, self._is_tie(name, actual, expected)
        return "", False

    def _compare_output(self, name: str, actual: Outputs, expected: Outputs) -> str:
        here, there, plural = actual[name], expected[name], _pluralize(name)
        if isinstance(here, float):
            is_close = math.isclose(
                here,
                there,
                rel_tol=self._tolerances["relative"],
                abs_tol=self._tolerances["absolute"],
            )
            is_close = is_close or (math.isnan(here) and math.isnan(there))
            return "" if is_close else f"the {plural} differ: {here:.6f} and {there:.6f}"
        if _is_float_array(here):
            return self._compare_arrays(plural, here, there)
        here, there = _to_list(here), _to_list(there)
        if here == there:
            return ""
        if name != self._answer:
            return f"the {plural} differ: {here} and {there}"
        scores = ["", ""]
        if self._score in actual and self._score in expected:
            scores = [f" ({outputs[self._score]:.5f})" for outputs in (actual, expected)]
        return f"the {plural} differ: {here!r}{scores[0]}, {there!r}{scores[1]}"

    def _compare_arrays(self, plural: str, actual: Any, expected: Any) -> str:
        here, there = np.asarray(actual), np.asarray(expected)
        if here.size == there.size == 0:  # an empty nested list has lost its inner dimensions
            return ""
        if here.shape != there.shape:
            return f"the shapes of the {plural} differ: {here.shape} and {there.shape}"
        difference = np.abs(np.subtract(here, there, where=here != there, out=np.zeros(here.shape)))
        allowed = np.maximum(
            self._tolerances["array"], self._tolerances["relative"] * np.abs(there)
        )
        # `any(difference > allowed)` would accept a NaN in one of them.
        is_close = ((difference <= allowed) | (np.isnan(here) & np.isnan(there))).all()
        return "" if is_close else f"the {plural} differ by {difference.max():.6f}"

    def _is_tie(self, name: str, actual: Outputs, expected: Outputs) -> bool:
        """Whether both outputs are equally good by the model's own scores."""
        if isinstance(actual[name], float) or _is_float_array(actual[name]):
            return False
        if name == self._answer:
            score = self._score
            has_scores = score in actual and score in expected
            return has_scores and not self._compare_output(score, actual, expected)
        if self._answer in actual:
            return False
        # An n-best list: a tie if all its numbers are equal.
        numbers = [key for key in actual if key in expected and _is_float_array(actual[key])]
        return bool(numbers) and not any(
            self._compare_output(key, actual, expected) for key in numbers
        )


def _is_float_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _to_list(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _pluralize(name: str) -> str:
    if name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
