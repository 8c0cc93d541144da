"""Loads the export where nothing of ours is, and compares what it answers."""

from components.serving_check.component import ServingCheck

__all__ = ["ServingCheck"]
