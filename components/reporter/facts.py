"""What a report is made of: the artifacts of a run, read, and what is known of the run itself."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from components import predictions

# The artifacts that a report reads: each one's node, and the key of the node's output.
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
class Node:
    """One node of a run.

    Attributes:
        name: the component's.
        state: ``done``, ``cached``, ``failed``, …
        seconds: how long it took; None where nobody knows.
        peak_bytes: the most memory that it held; None where nobody knows.
    """

    name: str
    state: str
    seconds: float | None = None
    peak_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class About:
    """What a run is, apart from what it made.

    Attributes:
        name: the pipeline's.
        task: its task.
        config: the whole configuration, resolved.
        fingerprint: of the data; empty where nobody knows.
        run: the run's id; empty where the report is not of one.
        status: how it ended (``succeeded``, ``failed``, ``killed``, …), or ``running``; empty where
            nobody knows.
        failure: what failed (``node``, ``error``, ``remedy``); empty where nothing did.
        command: what makes the same model once more.
        versions: of the code and the packages that it stands on.
        machine: what it ran on, in words.
        nodes: in the order in which they ran.
    """

    name: str
    task: str
    config: Mapping[str, Any]
    fingerprint: str = ""
    run: str = ""
    status: str = ""
    failure: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    command: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    machine: str = ""
    nodes: Sequence[Node] = ()


@dataclasses.dataclass(frozen=True)
class Facts:
    """The artifacts of a run, each read when it is first asked for; what is not there is empty.

    Args:
        about: the run.
        folders: where the artifacts lie, by the names in `ARTIFACTS`.
    """

    about: About
    folders: Mapping[str, Path]

    @cached_property
    def corpus(self) -> dict[str, Any]:
        """What CorpusGen counted."""
        return self._json("corpus", "corpus.json")

    @cached_property
    def checks(self) -> dict[str, Any]:
        """What ExampleValidator found."""
        return self._json("checks", "checks.json")

    @cached_property
    def training(self) -> dict[str, Any]:
        """How the training went."""
        return self._json("model_run", "training.json")

    @cached_property
    def predicted(self) -> dict[str, Any]:
        """What the Predictor says of its table, with the model's contract."""
        return self._json("predictions", predictions.SUMMARY)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The metrics, with production's and a baseline's beside them."""
        return self._json("evaluation", "metrics.json")

    @cached_property
    def by_length(self) -> dict[str, Any]:
        """The metrics by the length of the input."""
        return self._json("evaluation", "by_length.json")

    @cached_property
    def slices(self) -> list[dict[str, Any]]:
        """The metrics of parts of the test split."""
        return self._json("evaluation", "slices.json").get("slices", [])

    @cached_property
    def degenerate(self) -> dict[str, Any]:
        """Answers that are wrong in ways that metrics hide."""
        return self._json("evaluation", "checks.json")

    @cached_property
    def blessing(self) -> dict[str, Any]:
        """The decision and its reasons."""
        return self._json("blessing", "blessing.json")

    @cached_property
    def serving(self) -> dict[str, Any]:
        """What the serving check found."""
        return self._json("serving", "serving_check.json")

    @cached_property
    def pushed(self) -> dict[str, Any]:
        """Where the model was pushed to, or why not."""
        return self._json("pushed", "pushed.json")

    @property
    def table(self) -> Path | None:
        """The table of answered rows."""
        folder = self.folders.get("predictions")
        path = folder / predictions.CANDIDATE if folder else None
        return path if path is not None and path.is_file() and self.predicted else None

    def _json(self, artifact: str, name: str) -> dict[str, Any]:
        folder = self.folders.get(artifact)
        if folder is None:
            return {}
        try:
            content = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}
