"""The types of Regard's own artifacts, and of what an executor receives."""

from typing import Any

from tfx.types.artifact import Artifact

Artifacts = dict[str, list[Artifact]]
# The properties of an execution: the component's parameters.
Properties = dict[str, Any]


class Tokenizer(Artifact):
    """SentencePiece models, one for each text feature, and their description ``tokenizer.json``."""

    TYPE_NAME = "regard.Tokenizer"


class Findings(Artifact):
    """JSON files with counts, shares and examples of problems in the data."""

    TYPE_NAME = "regard.Findings"


class Predictions(Artifact):
    """The predictions for a split: a Parquet file per model, and ``predictions.json``."""

    TYPE_NAME = "regard.Predictions"


class Report(Artifact):
    """A self-contained page about a run, ``report.html``."""

    TYPE_NAME = "regard.Report"
