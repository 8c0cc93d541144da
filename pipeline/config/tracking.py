"""The section ``tracking``: experiment trackers that record finished runs."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from regard.models.settings.base import Problem, Section

_FACTS = ("id", "status", "reason", "pushed_version")


@dataclasses.dataclass(frozen=True)
class TrackedRun:
    """What a tracker records.

    Attributes:
        record: the content of ``run.json``.
        parameters: the configuration with all defaults, flattened. It refers to environment
            variables by their names.
        metrics: names, values, times in seconds since 1970 and training steps.
        report: the HTML report; None if the run ended before it.
        published: the version that this run published; None if it published none.
    """

    record: Mapping[str, Any]
    parameters: Mapping[str, str]
    metrics: Sequence[tuple[str, float, float, int]]
    report: Path | None
    published: Path | None


class TrackerConfig(Section):
    """The settings of one tracker, and how it records a run."""

    package: ClassVar[str]  # that it imports

    @abstractmethod
    def record(self, run: TrackedRun) -> str:
        """Record a run in a process of its own, and return a sentence that says where.

        Any exception becomes a warning with its message.
        """


class MlflowConfig(TrackerConfig):
    """MLflow (the package mlflow-skinny, `pip install "regard[mlflow]"`).

    Attributes:
        uri: Address of the tracking server, http://HOST:PORT, or a folder, file:/PATH.
        experiment: Name of the experiment; null: the name of the pipeline.
    """

    package: ClassVar[str] = "mlflow"

    uri: Annotated[
        str, Field(pattern=r"^(https?://[^/@]+(/.*)?$|file:/)", examples=["http://mlflow:5000"])
    ]
    experiment: str | None = None

    def record(self, run: TrackedRun) -> str:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow 3.17 refuses file: URIs
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param
        from mlflow.exceptions import MlflowException

        client, record = MlflowClient(self.uri), run.record
        start, end = (int(1000 * record[key]) for key in ("started", "ended"))
        facts = {f"regard.{key}": str(record[key]) for key in _FACTS if record.get(key)}
        name = self.experiment or record["name"]
        experiment = client.get_experiment_by_name(name)
        id = experiment.experiment_id if experiment else client.create_experiment(name)
        info = client.create_run(id, start, facts, record["id"]).info
        try:
            metrics = [
                Metric(key, value, int(1000 * t), step) for key, value, t, step in run.metrics
            ]
            parameters = [
                Param(re.sub(r"[^\w.\- :/]", "_", key), value)  # MLflow refuses other characters
                for key, value in run.parameters.items()
            ]
            client.log_batch(info.run_id, metrics, parameters)
            if run.report is not None:
                client.log_artifact(info.run_id, str(run.report))
            if run.published is not None:
                client.log_artifact(info.run_id, str(run.published / "regard.json"), "model")
                with contextlib.suppress(MlflowException):  # it exists
                    client.create_registered_model(record["name"])
                source = f"{info.artifact_uri}/model"
                client.create_model_version(record["name"], source, info.run_id, facts)
        finally:
            status = "FAILED" if record.get("failure") else "FINISHED"
            client.set_terminated(info.run_id, status, end)
        return f"recorded as run {info.run_id} of experiment {name}"


class TrackingConfig(Section):
    """Experiment trackers that record parameters, curves, metrics and the report of each run.

    Attributes:
        mlflow: Record runs in MLflow; null: do not record.
    """

    mlflow: MlflowConfig | None = None

    @property
    def trackers(self) -> dict[str, TrackerConfig]:
        """The trackers that are set, by their keys."""
        return {name: tracker for name, tracker in self if tracker is not None}


def validate_tracking(tracking: TrackingConfig) -> Iterator[Problem]:
    """Yield missing packages."""
    for name, tracker in tracking.trackers.items():
        if importlib.util.find_spec(tracker.package) is None:
            message = f'needs the package {tracker.package}; pip install "regard[{name}]"'
            yield Problem(("tracking", name), message)
