"""The folder of a comparison."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from regard.core.files import atomic_write, write_json
from regard.core.processor import count_cores
from regard.core.yaml_text import to_yaml
from regard.pipeline.compare import plots, table
from regard.pipeline.compare.matrix import Member
from regard.pipeline.compare.results import ComparisonResults
from regard.pipeline.workspace import Workspace


@dataclasses.dataclass(frozen=True)
class ComparisonFolder:
    """``$REGARD_HOME/compare/<name>/``: configurations, logs, results, table and plots."""

    root: Path

    @classmethod
    def of(cls, workspace: Workspace, name: str) -> ComparisonFolder:
        """Return the folder of the comparison of that name."""
        return cls(workspace.home / "compare" / name)

    def log(self, label: str) -> Path:
        """Return the log of a model's run."""
        return self.root / "logs" / f"{label}.txt"

    def write_config(self, member: Member) -> Path:
        """Write the resolved configuration of a model, and return its path."""
        path = self.root / "configs" / f"{member.label}.yaml"
        atomic_write(path, to_yaml(member.config.recorded()))
        return path

    def write(self, results: ComparisonResults, command: str) -> None:
        """Write results, table and plots, each atomically.

        Args:
            results: the result of `gather`.
            command: the user's command.
        """
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        facts = {"command": command, "time": timestamp, "cores": count_cores()}
        write_json(self.root / "results.json", {**results.to_json(), **facts})
        atomic_write(self.root / "table.md", table.markdown(results, command))
        plots.write_plots(results, self.root)
