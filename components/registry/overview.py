"""Lists the versions of the registry with their state and their records."""

import contextlib
from collections.abc import Set
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.components.registry import records
from regard.components.registry.store import MODEL_FILE, Registry, is_pinned
from regard.core.errors import UserError
from regard.models.metrics import METRICS
from regard.serving.content_digest import content_digest

# The fields of a record that are listed, in this order.
_RECORD_FIELDS = (
    *("created", "run", "blessing", "compared_with", "rollback_of", "rolled_back_from", "reason"),
    "warm_start",
    *("rows", "spans", "data_fingerprint", "recipe", "digest", "regard", "stack"),
)


@dataclass(frozen=True)
class VersionScore:
    """A metric of a version, with the display name and scale where this Regard knows the metric."""

    name: str
    label: str
    value: float
    signature: str
    scale: float = 1.0


@dataclass(frozen=True)
class VersionEntry:
    """A version with its state.

    Attributes:
        path: the folder.
        live: whether it is the newest version, which servers use.
        pinned: whether pruning keeps it.
        withdrawn: whether production was rolled back from its model.
        record: the record; empty if it is missing or not valid.
        bytes: the size of its files.
        error: why the record is not valid; empty if it is.
    """

    path: Path
    live: bool
    pinned: bool
    withdrawn: bool
    record: records.VersionRecord
    bytes: int
    error: str = ""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.path.parent.name

    @property
    def version(self) -> int:
        """The version's number."""
        return int(self.path.name)

    @property
    def scores(self) -> list[VersionScore]:
        """The metrics of the record."""
        scores = []
        for name, metric in self.record.metrics.items():
            spec = METRICS.get(name)
            label, scale = (spec.label, spec.scale) if spec else (name, 1.0)
            scores.append(VersionScore(name, label, metric.value, metric.signature, scale))
        return scores

    def to_dict(self) -> dict[str, object]:
        """Return the entry as JSON values."""
        record = self.record.to_dict()
        return {
            "name": self.name,
            "version": self.version,
            "live": self.live,
            "pinned": self.pinned,
            "withdrawn": self.withdrawn,
            "scores": [asdict(score) for score in self.scores],
            **{key: record[key] for key in _RECORD_FIELDS if key in record},
            **({"error": self.error} if self.error else {}),
            "path": str(self.path),
            "bytes": self.bytes,
        }


def list_versions(registry: Registry, name: str | None = None) -> list[VersionEntry]:
    """Return every version, by name, newest first.

    Versions that are pushed or pruned meanwhile are listed completely or not at all.

    Args:
        registry: the registry.
        name: the only model to list; None: all.

    Raises:
        UserError: there is no model of that name.
    """
    if name is not None:
        registry.number(name)  # raises an error for unknown names
    entries: list[VersionEntry] = []
    for model in registry.names() if name is None else [name]:
        entries += _entries(registry, model)
    return entries


def _entries(registry: Registry, name: str) -> list[VersionEntry]:
    """Return the versions of a model at one moment."""
    while versions := registry.versions(name):
        live = versions[-1]
        withdrawn = records.read_record_or_empty(registry.path(name, live)).withdrawn
        digests = {model.digest for model in withdrawn}
        entries = []
        for version in reversed(versions):
            path = registry.path(name, version)
            with contextlib.suppress(FileNotFoundError):
                entry = _entry(registry, path, version == live, digests)
                # Versions are removed with one rename: one that exists now was complete before.
                if (path / MODEL_FILE).is_file():
                    entries.append(entry)
        if entries and entries[0].live:
            return entries
        # The live version was superseded and pruned meanwhile; try again.
    return []


def _entry(registry: Registry, path: Path, live: bool, withdrawn_digests: Set[str]) -> VersionEntry:
    record, error_message = records.VersionRecord(), ""
    try:
        record = records.read_record(path)
    except UserError as error:
        error_message = error.message
    is_withdrawn = bool(withdrawn_digests) and (
        (record.digest or content_digest(path)) in withdrawn_digests
    )
    return VersionEntry(
        path, live, is_pinned(path), is_withdrawn, record, registry.size(path), error_message
    )
