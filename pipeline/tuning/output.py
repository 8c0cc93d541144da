"""The file that a search writes: the user's own, with the best values and where they are from."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from components.errors import UserError
from components.files import atomic_path
from components.tuner.ranking import figure_of, plain, values_text
from components.tuner.space import with_values
from components.words import counted
from pipeline.config import load
from pipeline.tuning.editing import edited

if TYPE_CHECKING:
    from pipeline.config import Config


@dataclasses.dataclass(frozen=True)
class Original:
    """The user's file as it was when the search began; it may be edited while that goes on."""

    path: Path
    text: str
    config: Config

    @classmethod
    def read(cls, path: Path) -> Original:
        """Reads and checks a file.

        Raises:
            UserError: names every problem of the file.
        """
        config = load(path)
        return cls(path, path.read_bytes().decode("utf-8-sig"), config)


def target(source: Path, given: Path | None, force: bool) -> Path:
    """Where the file goes: what was given, or NAME.tuned.yaml beside the original.

    Raises:
        UserError: it is there already, or is a folder or the original itself.
    """
    path = given or source.with_name(f"{source.stem}.tuned{source.suffix}")
    if path.is_dir():
        raise UserError("this is a folder, not a file", str(path), "Give a file with -o FILE.")
    if path.exists() and os.path.samefile(path, source):
        raise UserError("this is the file itself", f"-o {path}", "Give the new file another name.")
    if path.exists() and not force:
        raise UserError(
            "there is a file already", str(path), "Write over it with --force, or give -o FILE."
        )
    return path


def check(original: Original, path: Path, values: Mapping[str, Any]) -> None:
    """Writes the file with any values and takes it away again: a search should not be in vain.

    Raises:
        UserError: it cannot be written so that it says what it should.
    """
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent}", "-o", "Make it, or give another file.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write(original, temporary, path, values, "")
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", str(path), "Give another file with -o FILE."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write(original: Original, path: Path, found: Mapping[str, Any]) -> None:
    """Writes the original with the best values, and where they are from.

    Args:
        original: the user's file.
        path: where to.
        found: the Tuner's ``trials.json``, and the path of its ``table``.

    Raises:
        UserError: it cannot be written any more.
    """
    values = found["trials"][0]["values"]
    try:
        with atomic_path(path) as temporary:
            _write(original, temporary, path, values, header(original, found))
    except (OSError, UserError) as error:
        reason = error.message if isinstance(error, UserError) else error.strerror
        raise UserError(
            f"the search has ended, but its file cannot be written: {reason}",
            where=str(path),
            remedy=f"The best values: {values_text(values)}. All trials: {found['table']}. "
            "The same command with another -o writes them without a search.",
        ) from None


def header(original: Original, found: Mapping[str, Any]) -> str:
    """Where the values come from, as comments.

    Args:
        original: the user's file.
        found: the Tuner's ``trials.json``.
    """
    best, count = found["trials"][0], len(found["trials"])
    score = figure_of(found["objective"], best["score"])
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    lines = [
        f"`regard tune {shlex.quote(original.path.name)}` found these values on {day}:",
        *_changes(original.config, best["values"]),
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
    original: Original, temporary: Path, path: Path, values: Mapping[str, Any], head: str
) -> None:
    config = original.config
    wanted = type(config).model_validate(with_values(config.model_dump(mode="json"), values))
    try:
        temporary.write_bytes(_text(original, values, head))
        right = load(temporary).model_dump() == wanted.model_dump()
    except (UserError, yaml.YAMLError):
        right = False
    if right:
        return
    source = original.path
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


def _text(original: Original, values: Mapping[str, Any], head: str) -> bytes:
    """The whole file, with the ends of lines that the original has."""
    text = original.text
    of_windows = text.count("\r\n") == text.count("\n") > 0
    if of_windows:
        text = text.replace("\r\n", "\n")
    text = head + edited(text, values)
    return (text.replace("\n", "\r\n") if of_windows else text).encode()
