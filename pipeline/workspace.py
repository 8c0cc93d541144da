"""Where everything lies: the folders below ``REGARD_HOME``. Pure paths, nothing is made here."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "REGARD_HOME"
DATA_VARIABLE = "REGARD_DATA"
DEFAULT = "workspace"


@dataclasses.dataclass(frozen=True)
class PipelinePaths:
    """The folder of one pipeline."""

    root: Path

    @property
    def metadata(self) -> Path:
        """The SQLite file of ML Metadata."""
        return self.root / "metadata.sqlite"

    @property
    def artifacts(self) -> Path:
        """TFX's pipeline root: ``<node>/<output>/<execution>/``."""
        return self.root / "artifacts"

    @property
    def checkpoints(self) -> Path:
        """Training checkpoints, one folder a configuration digest."""
        return self.root / "checkpoints"

    @property
    def tuning(self) -> Path:
        """Searches of `regard tune`, one folder a digest of what they search."""
        return self.root / "tuning"

    @property
    def lock(self) -> Path:
        """The file that a running run holds locked."""
        return self.root / "lock"

    @property
    def schedule(self) -> Path:
        """What ``regard schedule`` remembers."""
        return self.root / "schedule"

    @property
    def runs(self) -> Path:
        """The run store: one folder a run id."""
        return self.root / "runs"


@dataclasses.dataclass(frozen=True)
class Workspace:
    """The folder that holds data, pipelines and the model registry."""

    home: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Workspace:
        """The workspace that ``REGARD_HOME`` names; ``./workspace`` where it is unset or empty."""
        environment = os.environ if environment is None else environment
        return cls(_absolute(environment.get(VARIABLE) or DEFAULT))

    @property
    def registry(self) -> Path:
        """The model registry: ``<name>/<version>/``."""
        return self.home / "registry"

    @property
    def pipelines(self) -> Path:
        """The parent of all pipeline folders."""
        return self.home / "pipelines"

    def data(self, dataset: str) -> Path:
        """The folder of a generated data set, and of a fetched one without ``REGARD_DATA``."""
        return self.home / "data" / dataset

    def data_root(self, environment: Mapping[str, str] | None = None) -> Path:
        """What ``${REGARD_DATA}`` stands for: that variable, else the workspace's own data."""
        environment = os.environ if environment is None else environment
        return _absolute(environment.get(DATA_VARIABLE) or self.home / "data")

    def pipeline(self, name: str) -> PipelinePaths:
        """The paths of the pipeline of that name."""
        return PipelinePaths(self.pipelines / name)

    def pipeline_names(self) -> list[str]:
        """The names of the pipelines that have a folder here, sorted."""
        if not self.pipelines.is_dir():
            return []
        return sorted(path.name for path in self.pipelines.iterdir() if path.is_dir())


def _absolute(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()
