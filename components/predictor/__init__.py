"""Decodes the test split with the new model and with the one in production."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.predictor.component import Predictor

__all__ = ["Predictor"]


def __getattr__(name: str) -> Any:
    # The component needs TFX; a Beam worker, which asks the model, does not.
    if name == "Predictor":
        from components.predictor.component import Predictor

        return Predictor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
