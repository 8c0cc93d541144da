"""TFDV's anomalies, and checks of the rows next to them."""

from __future__ import annotations

from components.example_validator.component import ExampleValidator

__all__ = ["ExampleValidator"]
