"""The ExampleValidator as a TFX component: TFX's, with the examples and a second output."""

from __future__ import annotations

from tfx.types.standard_artifacts import ExampleAnomalies, Examples, ExampleStatistics, Schema

from regard.components.common.artifacts import Findings
from regard.components.common.component import Component
from regard.components.example_validator.executor import Executor


class ExampleValidator(Component):
    """Compare the statistics with the schema, as TFX does, and check the rows themselves.

    Args:
        statistics: from StatisticsGen.
        schema: from SchemaGen.
        examples: the examples of the statistics.
        checks: JSON of ``data.checks``.
        features: JSON list of the features.
        production: JSON with the ``version`` in production, the path of its ``profile``, and the
            ``digest`` of that file, for the cache; or with ``latest`` as ``version`` and the folder
            of all ``versions``, of which the newest is used; empty if there is none.

    Outputs: ``anomalies`` (as TFX's) and ``findings``: ``checks.json`` (count, share and first
    examples of every check, with file and line; lengths; drift), ``profile.json`` (words and
    lengths of the training split) and ``target_overlap.json`` (hashes of references of the other
    splits that the training split contains).
    """

    EXECUTOR = Executor
    PARAMETERS = {"checks": str, "features": str, "production": str}
    INPUTS = {"statistics": ExampleStatistics, "schema": Schema, "examples": Examples}
    OUTPUTS = {"anomalies": ExampleAnomalies, "findings": Findings}
