"""Makes one page of HTML of a run: its data, training, scores, answers, and where it looked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.reporter.component import Reporter

__all__ = ["Reporter"]


def __getattr__(name: str) -> Any:
    # The component needs TFX, which takes seconds to import; what it works with does not.
    if name == "Reporter":
        from components.reporter.component import Reporter

        return Reporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
