"""Starter configurations: the file ``starter.yaml`` of each task."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from regard.components.common.errors import UserError
from regard.components.common.files import atomic_write
from regard.pipeline.config.config import require_task

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


def starter(task: str, name: str) -> str:
    """Return the starter configuration of a task, for a pipeline of the given name.

    Raises:
        UserError: The task does not exist, or the name is not valid.
    """
    require_task(task, "TASK")
    if not _NAME.fullmatch(name):
        raise UserError(
            f"The file name sets the name of the pipeline, but {name!r} is not a valid name. Use "
            "lower-case letters, digits and hyphens, starting with a letter.",
            where="--out",
            remedy="Give another file name, for example --out my-model.yaml.",
        )
    file = resources.files(f"regard.models.tasks.{task}") / "starter.yaml"
    return file.read_text(encoding="utf-8").replace("NAME", name)


def write_starter(task: str, path: Path) -> None:
    """Write the starter configuration of a task.

    Raises:
        UserError: See ``starter``; or the file exists.
    """
    content = starter(task, path.stem)
    if path.exists():
        raise UserError(
            "The file already exists.", where=str(path), remedy="Give another name with --out."
        )
    atomic_write(path, content)
