"""TFDV's anomalies, and checks of the rows next to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.example_validator.component import ExampleValidator

__all__ = ["ExampleValidator"]


def __getattr__(name: str) -> Any:
    # The component needs TFX, which takes seconds to import; Beam's workers and who counts words
    # do not.
    if name == "ExampleValidator":
        from components.example_validator.component import ExampleValidator

        return ExampleValidator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
