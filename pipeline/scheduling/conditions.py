"""Conditions for a run: a new span, new rows, drift.

Each compares the current data with that of the last training that reached its decision, whether or
not its model was pushed. A run that was refused or failed has trained on nothing.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from regard.components.data.profiles import Profile
from regard.components.example_validator.corpus_checks import profile_training_split
from regard.components.example_validator.drift_check import check_drift as measure_drift
from regard.components.registry.store import Registry
from regard.core.files import read_json_object, write_json
from regard.core.formatting import format_count
from regard.pipeline.config import Config
from regard.pipeline.scheduling.snapshot import DataSnapshot
from regard.pipeline.scheduling.state import TrainedData, TrainingFiles
from regard.pipeline.workspace import Workspace
from regard.serving.contract import PROFILE

CURRENT_PROFILE = "profile.json"
_MAX_NAMES = 3
_FIRST = "nothing was trained yet"
_MEASURES = {"drift_words": "words", "drift_oov": "new words", "drift_lengths": "lengths"}


@dataclass(frozen=True)
class ConditionResult:
    """The result of a condition: whether it is met, and why, in a sentence."""

    condition: str
    is_met: bool
    text: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.text}"


def check_new_span(snapshot: DataSnapshot, trained: TrainedData | None) -> ConditionResult:
    """Check for a span that the last training did not have, or had with other content."""
    if trained is None:
        return ConditionResult("new_span", True, _FIRST)
    before = trained.spans
    new = [name for name in snapshot.spans if name not in before]
    changed = [name for name, files in snapshot.spans.items() if before.get(name, files) != files]
    texts = [f"{_format_spans(new)} new"] if new else []
    texts += [f"{_format_spans(changed)} changed since the last training"] if changed else []
    text = "; ".join(texts) or f"no span after {next(reversed(snapshot.spans))}"
    return ConditionResult("new_span", bool(texts), text)


def check_new_rows(
    snapshot: DataSnapshot, trained: TrainedData | None, min_rows: int
) -> ConditionResult:
    """Check for a number of rows that the last training did not have.

    Of a file that was appended to, the appended rows count; of any other changed file, all rows.
    """
    if trained is None:
        return ConditionResult("new_rows", True, _FIRST)
    by_path = {_paths(group): group for group in trained.groups}
    known = {_digests(group) for group in trained.groups}
    count = sum(
        _count_new_rows(group, by_path.get(_paths(group)))
        for group in snapshot.groups
        if _digests(group) not in known
    )
    text = f"{format_count(count, 'new row')} of {min_rows:,} required"
    return ConditionResult("new_rows", count >= min_rows, text)


def check_drift(
    snapshot: DataSnapshot, config: Config, folder: Path, save: bool = True
) -> ConditionResult:
    """Check whether the training split has drifted beyond a limit.

    Args:
        snapshot: the current data.
        config: the pipeline's configuration; its data checks have the limits.
        folder: the schedule's folder, where profiles are cached if it exists.
        save: whether to cache the profile.
    """
    workspace = Workspace(folder.parents[2])
    registry = Registry(config.serving.registry or workspace.registry)
    version = registry.latest(config.name)
    path = None if version is None else registry.path(config.name, version) / PROFILE
    if path is None or not path.is_file():
        return ConditionResult("drift", True, "no version in production to measure it against yet")
    name = f"{config.name}@{version}"
    reference = json.dumps({"version": name, "profile": str(path)})
    drift = measure_drift(reference, cached_profile(snapshot, folder, save), config.data.checks)
    checks = drift["checks"] if drift else {}
    if not checks:
        return ConditionResult("drift", False, f"nothing can be compared with {name}")
    exceeded = any(check["exceeded"] for check in checks.values())
    text = ", ".join(
        f"{_MEASURES[measure]} of {check['feature']} {check['value']:.3f}"
        f" ({'>' if check['exceeded'] else '≤'} {check['limit']:g})"
        for measure, check in checks.items()
        if check["exceeded"] or not exceeded
    )
    return ConditionResult("drift", exceeded, f"since {name}: {text}")


def cached_profile(snapshot: DataSnapshot, folder: Path, save: bool = True) -> Profile:
    """Return the profile of the training split, from the schedule's folder if it is current.

    Args:
        snapshot: the current data.
        folder: the schedule's folder.
        save: whether to save a new profile, if the folder exists.
    """
    path = folder / CURRENT_PROFILE
    cached = read_json_object(path)
    if cached.get("key") == snapshot.key:
        return cast("Profile", cached)
    profile = profile_training_split(snapshot.corpus)
    if save and folder.is_dir():
        write_json(path, {"key": snapshot.key, **profile})
    return profile


def _format_spans(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    some = ", ".join(names[-_MAX_NAMES:])
    return f"span {some} is" if len(names) == 1 else f"spans {some}{more} are"


def _paths(group: TrainingFiles) -> tuple[str, ...]:
    return tuple(path for path, _, _ in group.files)


def _digests(group: TrainingFiles) -> tuple[str, ...]:
    return tuple(digest for _, _, digest in group.files)


def _count_new_rows(now: TrainingFiles, before: TrainingFiles | None) -> int:
    rows = now.rows or 0
    if before is None or before.rows is None:
        return rows
    files = zip(now.files, before.files, strict=True)
    if all(_starts_with(path, size, digest) for (path, *_), (_, size, digest) in files):
        return max(0, rows - before.rows)
    return rows


def _starts_with(path: str, size: int, digest: str) -> bool:
    """Return whether the first ``size`` bytes of a file have a digest."""
    hasher = hashlib.sha256()
    with open(path, "rb") as file:
        while size > 0 and (block := file.read(min(size, 1 << 20))):
            hasher.update(block)
            size -= len(block)
    return size == 0 and hasher.hexdigest() == digest
