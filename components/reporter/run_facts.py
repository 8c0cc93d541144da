"""The facts that a report is based on: the artifacts of a run, and the run itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.components.common import prediction_table
from regard.core.files import read_json_object

# The artifacts of a report: for each its node, and the key of the node's output.
ARTIFACTS: dict[str, tuple[str, str]] = {
    "corpus": ("CorpusGen", "findings"),
    "checks": ("ExampleValidator", "findings"),
    "augmentation": ("Augmenter", "findings"),
    "model_run": ("Trainer", "model_run"),
    "model": ("Trainer", "model"),
    "predictions": ("Predictor", "predictions"),
    "evaluation": ("Evaluator", "evaluation"),
    "blessing": ("Evaluator", "blessing"),
    "serving": ("ServingCheck", "blessing"),
    "pushed": ("Pusher", "pushed_model"),
}


@dataclasses.dataclass(frozen=True)
class NodeFacts:
    """One node of a run.

    Attributes:
        name: of the component.
        state: ``done``, ``cached``, ``failed``, …
        seconds: its duration; None if unknown.
        peak_bytes: its peak memory; None if unknown.
    """

    name: str
    state: str
    seconds: float | None = None
    peak_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class RunInfo:
    """A run, apart from its artifacts. Empty values are unknown or do not apply.

    Attributes:
        name: of the pipeline.
        task: of the pipeline.
        config: the whole configuration, resolved.
        fingerprint: of the data.
        run: the run's id.
        started: when the run began, in seconds since 1970; None if unknown.
        status: ``succeeded``, ``failed``, ``killed``, …, or ``running``.
        failure: the failed ``node``, the ``error``, ``where`` and the ``remedy``.
        command: reproduces the run.
        versions: of the code and its packages.
        machine: a description.
        nodes: in execution order.
    """

    name: str
    task: str
    config: Mapping[str, Any]
    fingerprint: str = ""
    run: str = ""
    started: float | None = None
    status: str = ""
    failure: Mapping[str, object] = dataclasses.field(default_factory=dict)
    command: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    machine: str = ""
    nodes: Sequence[NodeFacts] = ()


def _artifact_file(artifact: str, name: str) -> cached_property[dict[str, Any]]:
    """Return a property that reads a JSON file of an artifact once."""

    def read(facts: RunFacts) -> dict[str, Any]:
        folder = facts.folders.get(artifact)
        return read_json_object(folder / name) if folder else {}

    return cached_property(read)


@dataclasses.dataclass(frozen=True)
class RunFacts:
    """The artifacts of a run, read on first use; a missing file is an empty dictionary.

    Args:
        info: about the run.
        folders: of the artifacts, by the names in `ARTIFACTS`.
    """

    info: RunInfo
    folders: Mapping[str, Path]

    # Sources and counts of CorpusGen, and the results of ExampleValidator.
    corpus = _artifact_file("corpus", "corpus.json")
    data_checks = _artifact_file("checks", "checks.json")
    # What published models changed in the train split.
    augmentation = _artifact_file("augmentation", "augmentation.json")
    # Result and history of the training.
    training = _artifact_file("model_run", "training.json")
    # The Predictor's summary, with the contract of the model.
    predictions = _artifact_file("predictions", prediction_table.SUMMARY)
    # Metrics of the model, production and baselines; metrics by input length and in slices;
    # checks for degenerate outputs.
    metrics = _artifact_file("evaluation", "metrics.json")
    by_length = _artifact_file("evaluation", "by_length.json")
    slices = _artifact_file("evaluation", "slices.json")
    output_checks = _artifact_file("evaluation", "checks.json")
    # The decision of the gate, the serving check, and the published version.
    blessing = _artifact_file("blessing", "blessing.json")
    serving = _artifact_file("serving", "serving_check.json")
    pushed = _artifact_file("pushed", "pushed.json")

    @property
    def contract(self) -> dict[str, Any]:
        """The contract of the model."""
        return self.predictions.get("contract", {})

    @property
    def table(self) -> Path | None:
        """The table of predictions; None without one."""
        if not self.predictions:
            return None
        path = self.folders["predictions"] / prediction_table.CANDIDATE
        return path if path.is_file() else None
