"""Starter configurations: one lies beside each task."""

from __future__ import annotations

import re
from pathlib import Path

from components.errors import UserError
from components.files import atomic_write
from pipeline.config import known_task

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


def text(task: str, name: str) -> str:
    """The starter of a task as YAML, for a pipeline of that name.

    Raises:
        UserError: there is no such task, or it cannot be a name.
    """
    known_task(task, "TASK")
    if not _NAME.fullmatch(name):
        raise UserError(
            f"the file is called {name}, and so would be the pipeline; a name is a small letter, "
            "then small letters, digits and hyphens, no hyphen last",
            where="--out",
            remedy="Give it another name, such as --out my-model.yaml.",
        )
    folder = Path(__file__).resolve().parent.parent / "models" / "tasks" / task
    return (folder / "starter.yaml").read_text(encoding="utf-8").replace("NAME", name)


def write(task: str, path: Path) -> Path:
    """Writes the starter of a task.

    Raises:
        UserError: as ``text`` does, or there is a file already.
    """
    content = text(task, path.stem)
    if path.exists():
        raise UserError(
            "there is such a file already", where=str(path), remedy="Name another one with --out."
        )
    atomic_write(path, content)
    return path
