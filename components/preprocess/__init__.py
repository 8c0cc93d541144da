"""TFX Transform with the task's preprocessing, and its tokenizers inside the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.preprocess.component import Preprocess

__all__ = ["Preprocess"]


def __getattr__(name: str) -> Any:
    # The component needs TFX; whoever imports module.py inside a Beam worker does not.
    if name == "Preprocess":
        from components.preprocess.component import Preprocess

        return Preprocess
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
