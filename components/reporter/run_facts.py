"""The facts that a report is based on: the artifacts of a run, and the run itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.components.common import prediction_table
from regard.components.common.run_record import RunRecord
from regard.core.files import read_json_object
from regard.core.formatting import format_bytes, format_count

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


def _artifact_file(artifact: str, name: str) -> cached_property[dict[str, Any]]:
    """Return a property that reads a JSON file of an artifact once."""

    def read(facts: RunFacts) -> dict[str, Any]:
        folder = facts.folders.get(artifact)
        return read_json_object(folder / name) if folder else {}

    return cached_property(read)


@dataclasses.dataclass(frozen=True)
class RunFacts:
    """A run and its artifacts, read on first use; a missing file is an empty dictionary.

    Attributes:
        run: the record of the run, as far as it is known.
        folders: the folders of the artifacts, by the names in `ARTIFACTS`.
        task: the task of the pipeline.
        config: the whole configuration, resolved.
    """

    run: RunRecord
    folders: Mapping[str, Path]
    task: str = ""
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)

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
    # the calibration of the confidence; checks for degenerate outputs.
    metrics = _artifact_file("evaluation", "metrics.json")
    by_length = _artifact_file("evaluation", "by_length.json")
    slices = _artifact_file("evaluation", "slices.json")
    confidence = _artifact_file("evaluation", "confidence.json")
    output_checks = _artifact_file("evaluation", "checks.json")
    # The decision of the gate, the serving check, and the published version.
    blessing = _artifact_file("blessing", "blessing.json")
    serving = _artifact_file("serving", "serving_check.json")
    pushed = _artifact_file("pushed", "pushed.json")

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the code and of its packages."""
        code = {"regard": " ".join(self.run.regard.values())} if self.run.regard else {}
        return {**code, **self.run.stack}

    @property
    def machine(self) -> str:
        """A description of the machine; empty if it is not known."""
        facts: Mapping[str, Any] = self.run.machine
        parts = [facts.get("system", "")]
        if "cores" in facts:
            parts.append(format_count(facts["cores"], "core"))
        if "memory_bytes" in facts:
            parts.append(format_bytes(facts["memory_bytes"]))
        return ", ".join(filter(None, [*parts, *facts.get("gpus", [])]))

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
