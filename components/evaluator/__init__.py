"""Scores the predictions and decides whether the model may be pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.evaluator.component import Evaluator

__all__ = ["Evaluator"]


def __getattr__(name: str) -> Any:
    # The component needs TFX, which takes seconds to import; what it works with does not.
    if name == "Evaluator":
        from components.evaluator.component import Evaluator

        return Evaluator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
