"""What is reason enough for a run: a new span, new rows, drift; each held against what was before.

Before is the last training that came to its decision, whether its model was pushed or not. What was
refused or failed has trained nothing, so what was new then is new still.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components import profiles
from components.drift import drift
from components.registry import PROFILE, Registry
from components.words import counted
from pipeline.scheduling import profile

if TYPE_CHECKING:
    from pipeline.config import Config
    from pipeline.scheduling.look import Look

LOOKED, TRAINED = "profile.json", "trained-profile.json"
_SHOWN = 3
_NOTHING_BEFORE = "nothing was trained on yet"
_CALLED = {"drift_words": "words", "drift_oov": "new words", "drift_lengths": "lengths"}
_REMEDY = "Remove the file: drift is then not measured from it."


@dataclass(frozen=True)
class Finding:
    """What a look found of one condition: whether it holds, and why, in a sentence."""

    condition: str
    holds: bool
    text: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.text}"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def new_span(look: Look, trained: Mapping[str, Any] | None) -> Finding:
    """Whether a span is there that the last training did not have as it is now."""
    if trained is None:
        return Finding("new_span", True, _NOTHING_BEFORE)
    before = trained["spans"]
    new = [name for name in look.spans if name not in before]
    changed = [name for name, now in look.spans.items() if before.get(name, now) != now]
    told = [f"{_named(new)} new"] if new else []
    told += [f"{_named(changed)} not what was trained on"] if changed else []
    text = "; ".join(told) or f"no span is new since {next(reversed(look.spans))}"
    return Finding("new_span", bool(told), text)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    some = ", ".join(names[-_SHOWN:])
    return f"span {some} is" if len(names) == 1 else f"spans {some}{more} are"


def new_rows(look: Look, trained: Mapping[str, Any] | None, least: int) -> Finding:
    """Whether the training files have so many rows that the last training did not have.

    Of a file that only grew, what was added counts; of one that changed otherwise, every row.
    """
    if trained is None:
        return Finding("new_rows", True, _NOTHING_BEFORE)
    by_path = {_paths(group): group for group in trained["groups"]}
    known = {_content(group) for group in trained["groups"]}
    count = sum(
        _added(group, by_path.get(_paths(group)))
        for group in look.groups
        if _content(group) not in known
    )
    rows = counted(count, "new row")
    enough = count >= least
    text = f"{rows}, and {least:,} {'are enough' if enough else 'are needed'}"
    return Finding("new_rows", enough, text)


def _paths(group: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(path for path, _, _ in group["files"])


def _content(group: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(content for _, _, content in group["files"])


def _added(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> int:
    """The rows of a group that a training on it as it was before has not seen."""
    if before is None or before.get("rows") is None:
        return now["rows"]
    files = zip(now["files"], before["files"], strict=True)
    if all(_begins_with(path, size, was) for (path, *_), (_, size, was) in files):
        return max(0, now["rows"] - before["rows"])
    return now["rows"]


def _begins_with(path: str, size: int, content: str) -> bool:
    """Whether the first bytes of a file are what the whole file was."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while size > 0 and (block := file.read(min(size, 1 << 20))):
            digest.update(block)
            size -= len(block)
    return size == 0 and digest.hexdigest() == content


def drifted(
    look: Look, config: Config, limits: Mapping[str, float], folder: Path, keep: bool = True
) -> Finding:
    """Whether the training split has drifted beyond a limit.

    Args:
        look: what lies there now.
        config: the pipeline's.
        limits: by the name of the check.
        folder: the schedule's, where profiles are kept; nothing is kept where there is none yet.
        keep: whether the profile is kept.
    """
    reference = _reference(config, folder)
    now = profile.remembered(look.data, look.key, folder / LOOKED, keep and folder.is_dir())
    if reference is None:
        return Finding("drift", True, "there is nothing to measure it from yet")
    since, path = reference
    measured = drift(profiles.read(path, _REMEDY), now)
    worst = {
        name: max(
            ((one["value"], feature) for feature, one in measured[name].items()),
            key=lambda found: found[0],
        )
        for name in limits
        if measured[name]
    }
    if not worst:
        return Finding("drift", False, f"nothing in it can be compared with {since}")
    over = [name for name, (value, _) in worst.items() if value > limits[name]]
    told = ", ".join(
        f"{_CALLED[name]} of {feature} {value:.3f}"
        f" ({'above' if name in over else 'up to'} {limits[name]:g})"
        for name, (value, feature) in worst.items()
        if name in over or not over
    )
    return Finding("drift", bool(over), f"since {since}, {told}")


def _reference(config: Config, folder: Path) -> tuple[str, Path] | None:
    """What to measure drift from: what it is called, and its profile."""
    registry = Registry(Path(str(config.serving.registry)))
    version = registry.latest(config.name)
    if version is not None:
        path = registry.path(config.name, version) / PROFILE
        if path.is_file():
            return f"{config.name}@{version}", path
    if (folder / TRAINED).is_file():
        return "the last training", folder / TRAINED
    return None
