"""A run of a pipeline: its nodes with their states, what it starts from, and its record.

The worker emits these parts as events (:mod:`regard.core.events`), ``run.json`` stores them, and
the terminal and the report show them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    ValidationError,
    field_serializer,
    field_validator,
)
from typing_extensions import Self

from regard.core.errors import Failure

# The states of a node, and the statuses of a run.
WAITING, RUNNING, DONE, CACHED, FAILED = "waiting", "running", "done", "cached", "failed"
STOPPED = "stopped"
SUCCEEDED, NOT_BLESSED = "succeeded", "not blessed"
INTERRUPTED, KILLED = "interrupted", "killed"

_COST = ("seconds", "peak_bytes")
_RESULTS = ("outputs", "properties", "digests")


class _Part(BaseModel):
    """A part of a run that is read from a file. Only the fields that are set are written."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read JSON values; fields with invalid values are left out."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            invalid = {problem["loc"][0] for problem in error.errors()}
        return cls.model_validate({k: v for k, v in content.items() if k not in invalid})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set as JSON values."""
        return self.model_dump(exclude_unset=True)


class Origin(_Part):
    """What a run starts from: its data, the version in production, and models.

    Attributes:
        data_fingerprint: The digest of the data.
        word_vectors: The digest of each file of words or word vectors, by its use.
        parent: The version in production that the model is compared with.
        start: The model that the training starts from, see ``registry.starting_models``.
        ensemble: The other models of the exported ensemble.
        augmentation: The models that change the train split.
        plan: A digest of everything that the run depends on.
    """

    data_fingerprint: str | None = None
    word_vectors: dict[str, str] = {}
    parent: str | None = None
    start: dict[str, str] | None = None
    ensemble: list[dict[str, str]] = []
    augmentation: list[dict[str, str]] = []
    plan: str = ""


class Node(BaseModel):
    """A node of a run.

    Attributes:
        name: The name of the component.
        state: One of the states of this module.
        started: The start in seconds since 1970; None before it.
        seconds: The duration; of a cached node that of the cache lookup.
        peak_bytes: The peak memory; None if it is unknown, as for a cached node.
        outputs: The URI of each output, by its key.
        properties: The custom properties of each output.
        digests: The digest of the files of each output.
        text: The present activity.
        fraction: The part of the work that is done.
        notes: Messages for the user.
        results: Messages that the summary of the run contains, too.
        warnings: Warnings for the user.
    """

    name: str
    state: str = WAITING
    started: float | None = None
    seconds: float | None = None
    peak_bytes: int | None = None
    outputs: dict[str, str] = {}
    properties: dict[str, dict[str, int | float | str]] = {}
    digests: dict[str, str] = {}
    text: str = ""
    fraction: float | None = None
    notes: list[str] = []
    results: list[str] = []
    warnings: list[str] = []

    @property
    def has_ended(self) -> bool:
        """Whether the node was executed or found in the cache, or failed."""
        return self.state not in (WAITING, RUNNING)

    def elapsed(self, now: float | None = None) -> float | None:
        """Return the seconds from start to end, or until now; None before the start."""
        if self.seconds is not None or self.started is None:
            return self.seconds
        return max(0.0, (time.time() if now is None else now) - self.started)

    def facts(self) -> dict[str, Any]:
        """Return the state and the known cost, as ``run.json`` stores them."""
        return self.model_dump(include={"state", *_COST}, exclude_none=True)

    def to_event(self) -> dict[str, Any]:
        """Return the fields of an event about the state of this node."""
        results = self.model_dump(include=set(_RESULTS), exclude_defaults=True)
        return {"node": self.name, **self.facts(), **results}

    def apply_event(self, event: Mapping[str, Any]) -> None:
        """Take over the state, and at the end the cost and the results, from an event."""
        self.state = event["state"]
        if self.state == RUNNING:
            self.started = event.get("time", time.time())
            self.seconds = self.peak_bytes = None
            return
        self.seconds, self.peak_bytes = event.get("seconds"), event.get("peak_bytes")
        self.text, self.fraction = "", None
        self.outputs = event.get("outputs", {})
        self.properties, self.digests = event.get("properties", {}), event.get("digests", {})


class RunRecord(Origin):
    """The content of ``run.json``. Unknown fields, of other versions of Regard, are kept.

    Attributes:
        id: The id of the run.
        name: The name of the pipeline.
        status: One of the statuses of this module.
        started: The start in seconds since 1970.
        ended: The end in seconds since 1970.
        seconds: The duration.
        config: The path of the YAML file.
        values: The values given for keys of the file, as ``KEY=VALUE``.
        digest: The digest of the configuration.
        runner: ``local`` or ``beam``.
        first: The node of ``--from``.
        last: The node of ``--to``.
        publish_anyway: Whether a model that the gate rejects is published as well.
        pid: The id of the process that started the run.
        seed: The seed of the training.
        regard: The version and the commit of Regard.
        stack: The versions of the main libraries.
        machine: The facts about the machine.
        command: The command that repeats the run.
        failure: Why the run failed.
        nodes: The nodes in execution order; None before the end of the run.
        data: The rows per split, the findings of the data checks, and the spans (``name``,
            ``version``, ``rows`` per split, whether it is ``replayed``, and the rows
            ``available`` for that).
        scores: The fields of ``MetricResult`` for each metric. ``value`` is None if it is
            undefined; ``baselines`` are the labels and values of trivial systems.
        blessed: The decision of the gate; None without one.
        reason: The reason for that decision, or why the model was not pushed.
        pushed_version: The version of the registry.
        directory: The folder of the run, in listings.
        metadata: The state of ML Metadata's database after the run.
        context: The name of the run's context in a shared database of ML Metadata; empty: ``id``.
        executions_of: The id of the run whose executions are those of a run without any.
    """

    model_config = ConfigDict(extra="allow")

    id: str = ""
    name: str = ""
    status: str = ""
    started: float | None = None
    ended: float | None = None
    seconds: float | None = None
    config: str = ""
    values: list[str] = []
    digest: str = ""
    runner: str = "local"
    first: str | None = None
    last: str | None = None
    publish_anyway: bool = False
    pid: int | None = None
    seed: int | None = None
    regard: dict[str, str] = {}
    stack: dict[str, str] = {}
    machine: dict[str, JsonValue] = {}
    command: str = ""
    failure: Failure | None = None
    nodes: dict[str, Node] | None = None
    data: dict[str, Any] = {}
    scores: list[dict[str, Any]] = []
    blessed: bool | None = None
    reason: str | None = None
    pushed_version: str | None = None
    directory: str = ""
    metadata: list[int] = []
    context: str = ""
    executions_of: str | None = None

    def with_changes(self, changes: RunRecord) -> RunRecord:
        """Return this record with the fields that are set in ``changes``."""
        update = {name: getattr(changes, name) for name in changes.model_fields_set}
        return self.model_copy(update=update)

    @field_validator("failure", mode="before")
    @classmethod
    def _read_failure(cls, failure: Any) -> Any:
        return Failure.from_dict(failure) if isinstance(failure, dict) else failure

    @field_serializer("failure")
    def _dump_failure(self, failure: Failure | None) -> dict[str, Any] | None:
        return None if failure is None else failure.to_dict()

    @field_validator("nodes", mode="before")
    @classmethod
    def _name_nodes(cls, nodes: Any) -> Any:
        """Add the names, which the file has only as keys."""
        if not isinstance(nodes, dict):
            return nodes
        result = {}
        for name, node in nodes.items():
            result[name] = {**node, "name": name} if isinstance(node, dict) else node
        return result

    @field_serializer("nodes")
    def _dump_nodes(self, nodes: dict[str, Node] | None) -> dict[str, Any] | None:
        return None if nodes is None else {name: node.facts() for name, node in nodes.items()}
