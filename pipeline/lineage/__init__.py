"""Traces a published version back to its run, its data and its predecessors."""

from regard.pipeline.lineage.trace import Lineage, trace

__all__ = ["Lineage", "trace"]
