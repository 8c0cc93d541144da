"""The folder of a comparison: its configurations, its results, its table and its pictures."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from components.files import atomic_write
from pipeline import machine
from pipeline.compare import table
from pipeline.compare.members import Member
from pipeline.workspace import Workspace


@dataclasses.dataclass(frozen=True)
class Folder:
    """``$REGARD_HOME/compare/<name>/``."""

    root: Path

    @classmethod
    def of(cls, workspace: Workspace, name: str) -> Folder:
        """The folder of the comparison of that name."""
        return cls(workspace.home / "compare" / name)

    @property
    def results(self) -> Path:
        """All figures as JSON."""
        return self.root / "results.json"

    @property
    def table(self) -> Path:
        """The table as Markdown."""
        return self.root / "table.md"

    def config(self, label: str) -> Path:
        """The configuration of one model, whole and with absolute paths."""
        return self.root / "configs" / f"{label}.yaml"

    def log(self, label: str) -> Path:
        """What the run of one model printed."""
        return self.root / "logs" / f"{label}.txt"

    def write_config(self, member: Member) -> Path:
        """Writes the configuration that a model runs with."""
        text = yaml.safe_dump(
            member.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True
        )
        path = self.config(member.label)
        # Variables are filled in already: what still looks like one is text.
        atomic_write(path, text.replace("${", "$${"))
        return path


def write(content: Mapping[str, Any], folder: Folder, command: str) -> None:
    """Writes what is known so far: results, table, pictures; each whole or not at all.

    Args:
        content: what ``results.gather`` gives.
        folder: where to.
        command: what the user called.
    """
    from pipeline.compare import pictures

    told = {
        **content,
        "command": command,
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": machine.cores(),
    }
    text = json.dumps(told, ensure_ascii=False, indent=2) + "\n"
    atomic_write(folder.results, text)
    atomic_write(folder.table, table.markdown(content, command))
    pictures.draw(content, folder.root)
