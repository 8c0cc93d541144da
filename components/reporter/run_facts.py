"""The facts that a report is based on: the artifacts of a run, and the run itself."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.components.common import prediction_table

# The artifacts of a report: for each its node, and the key of the node's output.
ARTIFACTS: dict[str, tuple[str, str]] = {
    "corpus": ("CorpusGen", "findings"),
    "checks": ("ExampleValidator", "findings"),
    "model_run": ("Trainer", "model_run"),
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
    status: str = ""
    failure: Mapping[str, object] = dataclasses.field(default_factory=dict)
    command: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    machine: str = ""
    nodes: Sequence[NodeFacts] = ()


@dataclasses.dataclass(frozen=True)
class RunFacts:
    """The artifacts of a run, read on first use; a missing file is an empty dictionary.

    Args:
        info: about the run.
        folders: of the artifacts, by the names in `ARTIFACTS`.
    """

    info: RunInfo
    folders: Mapping[str, Path]

    @cached_property
    def corpus(self) -> dict[str, Any]:
        """Sources and counts of CorpusGen."""
        return self._read_json("corpus", "corpus.json")

    @cached_property
    def data_checks(self) -> dict[str, Any]:
        """Results of ExampleValidator."""
        return self._read_json("checks", "checks.json")

    @cached_property
    def training(self) -> dict[str, Any]:
        """Result and history of the training."""
        return self._read_json("model_run", "training.json")

    @cached_property
    def predictions(self) -> dict[str, Any]:
        """The Predictor's summary, with the contract of the model."""
        return self._read_json("predictions", prediction_table.SUMMARY)

    @cached_property
    def contract(self) -> dict[str, Any]:
        """The contract of the model."""
        return self.predictions.get("contract", {})

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the model, of production and of a baseline."""
        return self._read_json("evaluation", "metrics.json")

    @cached_property
    def by_length(self) -> dict[str, Any]:
        """The metrics by input length."""
        return self._read_json("evaluation", "by_length.json")

    @cached_property
    def slices(self) -> list[dict[str, Any]]:
        """The metrics of slices of the test split."""
        return self._read_json("evaluation", "slices.json").get("slices", [])

    @cached_property
    def degenerate_outputs(self) -> dict[str, Any]:
        """Checks of the outputs."""
        return self._read_json("evaluation", "checks.json").get("checks", {})

    @cached_property
    def blessing(self) -> dict[str, Any]:
        """The decision of the gate, with its reasons."""
        return self._read_json("blessing", "blessing.json")

    @cached_property
    def serving(self) -> dict[str, Any]:
        """Result of the serving check."""
        return self._read_json("serving", "serving_check.json")

    @cached_property
    def pushed(self) -> dict[str, Any]:
        """The published version, if there is one."""
        return self._read_json("pushed", "pushed.json")

    @property
    def table(self) -> Path | None:
        """The table of predictions; None without one."""
        folder = self.folders.get("predictions")
        path = folder / prediction_table.CANDIDATE if folder else None
        return path if path is not None and path.is_file() and self.predictions else None

    def _read_json(self, artifact: str, name: str) -> dict[str, Any]:
        folder = self.folders.get(artifact)
        if folder is None:
            return {}
        try:
            content = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}
