"""Whether two answers to the same row are the same, as far as one can ask.

Imports nothing of ours, so that the serving check can load it by its path.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


class Comparison:
    """Compares answers of one model.

    Args:
        contract: the model's.
        limits: by how much numbers may differ: ``absolute`` or ``relative``, whichever is more;
            ``array`` in place of ``absolute`` for the numbers in an array.
    """

    def __init__(self, contract: Mapping[str, Any], limits: Mapping[str, float]):
        self._answer, self._score = contract["answer"], contract["score"]
        self._limits = limits

    def impossible(self, outputs: Mapping[str, Any]) -> list[str]:
        """What no answer may hold: a number that is none."""
        return [
            f"the {name} is {outputs[name]}"
            for name in dict.fromkeys((self._score, self._answer))
            if isinstance(outputs.get(name), float) and not math.isfinite(outputs[name])
        ]

    def difference(self, got: Mapping[str, Any], want: Mapping[str, Any]) -> tuple[str, bool]:
        """How the outputs that both have differ, in words; empty if they do not.

        Also says whether it is a tie: two answers between which the model does not decide, so
        that rounding does.
        """
        first = [name for name in (self._answer, self._score) if name in got and name in want]
        others = [name for name in got if name in want and name not in first]
        for name in first + others:
            text = self._one(name, got, want)
            if text:
                return text, self._is_tie(name, got, want)
        return "", False

    def _one(self, name: str, got: Mapping[str, Any], want: Mapping[str, Any]) -> str:
        """How one output differs."""
        here, there, called = got[name], want[name], _plural(name)
        if isinstance(here, float):
            close = self._close(here, there)
            return "" if close else f"the {called} differ: {here:.6f} and {there:.6f}"
        if _is_float_array(here):
            return self._array(called, here, there)
        here, there = _plain(here), _plain(there)
        if here == there:
            return ""
        if name != self._answer:
            return f"the {called} differ: {here} and {there}"
        scores = ["", ""]
        if self._score in got and self._score in want:
            scores = [f" ({one[self._score]:.5f})" for one in (got, want)]
        return f"the {called} differ: {here!r}{scores[0]}, {there!r}{scores[1]}"

    def _array(self, called: str, got: Any, want: Any) -> str:
        import numpy as np

        here, there = np.asarray(got), np.asarray(want)
        if here.size == there.size == 0:  # nested lists lose the width of no rows
            return ""
        if here.shape != there.shape:
            return f"the {called}' shapes differ: {here.shape} and {there.shape}"
        apart = np.abs(np.subtract(here, there, where=here != there, out=np.zeros(here.shape)))
        allowed = np.maximum(self._limits["array"], self._limits["relative"] * np.abs(there))
        # Not "any(apart > allowed)", which is also false for what is not a number.
        return "" if (apart <= allowed).all() else f"the {called} differ by {apart.max():.6f}"

    def _is_tie(self, name: str, got: Mapping[str, Any], want: Mapping[str, Any]) -> bool:
        """Whether another answer is as good by the model's own numbers."""
        if isinstance(got[name], float) or _is_float_array(got[name]):
            return False
        if name == self._answer:
            score = self._score
            return score in got and score in want and not self._one(score, got, want)
        if self._answer in got:
            return False
        # A list of the best answers: as good if all its numbers are.
        numbers = [key for key in got if key in want and _is_float_array(got[key])]
        return bool(numbers) and not any(self._one(key, got, want) for key in numbers)

    def _close(self, got: float, want: float) -> bool:
        allowed = max(self._limits["absolute"], self._limits["relative"] * abs(want))
        return got == want or abs(got - want) <= allowed


def _is_float_array(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _plain(value: Any) -> Any:
    """Arrays as lists, so that what came from a file compares."""
    return value.tolist() if hasattr(value, "tolist") else value


def _plural(name: str) -> str:
    """What several outputs of a name are called."""
    if name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
