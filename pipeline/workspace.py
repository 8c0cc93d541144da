"""The folders below ``REGARD_HOME``, and the lock of a pipeline."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from regard.core import locks
from regard.core.errors import EnvironmentFault
from regard.core.locks import Lock, LockHolder
from regard.core.storage import DEFAULT_HOME as DEFAULT
from regard.core.storage import HOME_VARIABLE as VARIABLE
from regard.core.storage import refuse_uri

DATA_VARIABLE = "REGARD_DATA"
_GRACE_SECONDS = 0.5  # `regard runs` holds the lock for an instant; a worker may be about to end


@dataclasses.dataclass
class PipelinePaths:
    """The folder of one pipeline, and what it contains."""

    root: Path

    def __post_init__(self) -> None:
        self.metadata = self.root / "metadata.sqlite"  # of ML Metadata
        # TFX's pipeline root, with <node>/<output>/<execution>/.
        self.artifacts = self.root / "artifacts"
        self.checkpoints = self.root / "checkpoints"  # a folder for each training key
        # Copies of the files of ``tokenizer.model``, in folders that SHA-256 names.
        self.tokenizers = self.root / "tokenizers"
        self.tuning = self.root / "tuning"  # a folder for each digest of a search's settings
        self.lock = self.root / "lock"  # held by a running run
        self.schedule = self.root / "schedule"  # state and caches of `regard schedule`
        self.runs = self.root / "runs"  # the run store: a folder for each run id


@dataclasses.dataclass
class Workspace:
    """The folder that holds data, pipelines and the model registry."""

    home: Path

    def __post_init__(self) -> None:
        self.registry = self.home / "registry"  # of the models: <name>/<version>/
        self.pipelines = self.home / "pipelines"  # the parent of all pipeline folders
        # Outputs of published models, for all pipelines: a folder for each model, data and code.
        self.augmentation = self.home / "augmentation"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Workspace:
        """The workspace that ``REGARD_HOME`` names; ``./workspace`` if it is unset or empty."""
        return cls(_absolute(environment.get(VARIABLE) or DEFAULT, VARIABLE))

    def data(self, dataset: str) -> Path:
        """The folder of a generated data set, and of a fetched one without ``REGARD_DATA``."""
        return self.home / "data" / dataset

    def data_root(self) -> Path:
        """The value of ``${REGARD_DATA}``: that variable, or else the workspace's own data."""
        return _absolute(os.environ.get(DATA_VARIABLE) or self.home / "data", DATA_VARIABLE)

    def pipeline(self, name: str) -> PipelinePaths:
        """The paths of the pipeline of that name."""
        return PipelinePaths(self.pipelines / name)

    def pipeline_names(self) -> list[str]:
        """The names of the pipelines that have a folder here, sorted."""
        if not self.pipelines.is_dir():
            return []
        return sorted(path.name for path in self.pipelines.iterdir() if path.is_dir())


def output_folders(root: Path) -> list[Path]:
    """Return the folders of the outputs below TFX's pipeline root, named by their executions.

    The names of TFX's own folders of stateful components are random instead. What lies behind a
    link is not returned.
    """
    # <node>/<output>/<execution>, and TFX's own <node>/.system/<purpose>/<execution>
    folders = [*root.glob("*/*/*"), *root.glob("*/.system/*/*")]
    folders = [path for path in folders if re.match(r"\d+(\.|$)|[0-9a-f-]{36}$", path.name)]
    return [path for path in folders if path.is_dir() and not _is_behind_link(path, root)]


def _is_behind_link(path: Path, root: Path) -> bool:
    """Return whether a path below a folder, or one of its parents there, is a link."""
    parts = path.relative_to(root).parts
    return any(root.joinpath(*parts[: i + 1]).is_symlink() for i in range(len(parts)))


def lock_pipeline(
    path: Path,
    wait: bool = False,
    on_wait: Callable[[LockHolder], None] | None = None,
    subject: str = "",
    remedy: str = "Wait for it with --wait",
) -> Lock:
    """Acquire the lock of a pipeline.

    Args:
        path: The lock file.
        wait: Whether to wait for the end of another run instead of failing.
        on_wait: Called with the lock's holder before waiting.
        subject: What the lock protects; by default the pipeline whose folder has the file.
        remedy: What else the user can do than to stop the process that holds the lock.

    Raises:
        UserError: Another run holds the lock (and ``wait`` is false), or the folder cannot be
            written.
    """

    def report_wait() -> None:
        if on_wait is not None:
            on_wait(locks.read_holder(path))

    try:
        return locks.acquire(path, None if wait else _GRACE_SECONDS, report_wait)
    except BlockingIOError:
        holder = locks.read_holder(path)
        who = f" (run {holder['run']}, process {holder['pid']})" if holder.get("run") else ""
        kill = f", or stop it with `kill {holder['pid']}`" if "pid" in holder else ""
        message = f"{subject or f'The pipeline {path.parent.name}'} is in use{who}."
        raise EnvironmentFault(message, str(path), f"{remedy}{kill}.") from None
    except OSError as error:  # also if the file system has no locks
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            message = f"The lock file cannot be used: {error.strerror}."
            raise EnvironmentFault(message, str(path), "Remove it.") from error
        message = f"The pipeline's folder is not writable: {error.strerror}."
        remedy = "Set REGARD_HOME to a writable folder on a local disk with free space."
        raise EnvironmentFault(message, str(path.parent), remedy) from error


def _absolute(path: str | Path, variable: str) -> Path:
    refuse_uri(path, variable)
    return Path(path).expanduser().absolute()
