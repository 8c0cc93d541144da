"""The file that a search writes: the user's own, with the best values and where they are from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from components.errors import UserError
from components.files import atomic_path
from components.tuner.ranking import figure_of, plain
from components.tuner.space import with_values
from components.words import counted
from pipeline.config import load
from pipeline.tuning.editing import edited

if TYPE_CHECKING:
    from pipeline.config import Config


def target(source: Path, given: Path | None, force: bool) -> Path:
    """Where the file goes: what was given, or NAME.tuned.yaml beside the original.

    Raises:
        UserError: it is there already, or is the original itself.
    """
    path = given or source.with_name(f"{source.stem}.tuned{source.suffix}")
    if path.exists() and os.path.samefile(path, source):
        raise UserError("this is the file itself", f"-o {path}", "Give the new file another name.")
    if path.exists() and not force:
        raise UserError(
            "there is a file already", str(path), "Write over it with --force, or give -o FILE."
        )
    return path


def check(source: Path, path: Path, config: Config, values: Mapping[str, Any]) -> None:
    """Writes the file with any values and takes it away again: a search should not be in vain.

    Raises:
        UserError: it cannot be written so that it says what it should.
    """
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent}", "-o", "Make it, or give another file.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write(source, temporary, path, config, values, "")
    finally:
        temporary.unlink(missing_ok=True)


def write(source: Path, path: Path, config: Config, values: Mapping[str, Any], header: str) -> None:
    """Writes the original with other values and a header of comments."""
    with atomic_path(path) as temporary:
        _write(source, temporary, path, config, values, header)


def header(source: Path, config: Config, found: Mapping[str, Any]) -> str:
    """Where the values come from, as comments.

    Args:
        source: the original.
        config: what it holds.
        found: the Tuner's ``trials.json``.
    """
    best, count = found["trials"][0], len(found["trials"])
    score = figure_of(found["objective"], best["score"])
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    lines = [
        f"`regard tune {shlex.quote(source.name)}` found these values on {day}:",
        *_changes(config, best["values"]),
        f"Trial {best['trial']} of {count} ({found['algorithm']}): {score} on the eval split, "
        f"{counted(best['epochs'], 'epoch')}.",
    ]
    return "".join(f"# {line}\n" for line in lines) + "\n"


def _changes(config: Config, values: Mapping[str, Any]) -> list[str]:
    whole = config.model_dump(mode="json")
    lines = []
    for key, value in values.items():
        before: Any = whole
        for name in key.split("."):
            before = before[name]
        was = "as before" if before == value else f"before: {plain(before)}"
        lines.append(f"  {key}: {plain(value)}   ({was})")
    return lines


def _write(
    source: Path, temporary: Path, path: Path, config: Config, values: Mapping[str, Any], head: str
) -> None:
    text = source.read_text(encoding="utf-8-sig")
    wanted = type(config).model_validate(with_values(config.model_dump(mode="json"), values))
    try:
        temporary.write_text(head + edited(text, values), encoding="utf-8")
        right = load(temporary).model_dump() == wanted.model_dump()
    except (UserError, yaml.YAMLError):
        right = False
    if right:
        return
    if source.parent.resolve() != path.parent.resolve():
        raise UserError(
            f"relative paths of {source} would mean something else in {path.parent.resolve()}",
            where=f"-o {path}",
            remedy=f"Choose a file in {source.parent.resolve()}.",
        )
    raise UserError(
        f"the values of {', '.join(values)} cannot be put into this file",
        where=str(source),
        remedy="Do their sections have anchors (&) and aliases (*)? Write them out.",
    )
