"""The artifact types that TFX does not have."""

from __future__ import annotations

from tfx.types.artifact import Artifact


class Tokenizer(Artifact):
    """One SentencePiece model a text feature, and ``tokenizer.json`` that describes them."""

    TYPE_NAME = "regard.Tokenizer"


class Findings(Artifact):
    """What was noticed in the data: JSON files with counts, shares and examples."""

    TYPE_NAME = "regard.Findings"


class Predictions(Artifact):
    """The decoded test split: one Parquet file a model, and ``predictions.json``."""

    TYPE_NAME = "regard.Predictions"


class Report(Artifact):
    """One page about a run, ``report.html``, that needs nothing else."""

    TYPE_NAME = "regard.Report"
