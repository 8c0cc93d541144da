"""Removes old runs of a pipeline with their artifacts, logs and rows in ML Metadata.

It may be killed at any moment: what is left is removed by the next call. A folder of an artifact is
renamed before its files are removed, so that no run finds a part of it again.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.components.registry.records import read_record_or_empty
from regard.components.registry.store import Registry, size_of
from regard.core import owned_folders
from regard.pipeline.config.metadata import MetadataConfig
from regard.pipeline.metadata_file import REMOVED
from regard.pipeline.metadata_store import MetadataStore, metadata_store, store_of_run
from regard.pipeline.runs.store import RECORD, REPORT, Run, runs_of
from regard.pipeline.scheduling.state import read_state
from regard.pipeline.workspace import PipelinePaths, Workspace, lock_pipeline


@dataclass(frozen=True)
class CleanResult:
    """What was removed, or would be.

    Attributes:
        name: the pipeline.
        runs: why each run is kept, by its id; None for one that is removed.
        bytes: the size of the removed files.
    """

    name: str
    runs: dict[str, str | None]
    bytes: int


def clean(workspace: Workspace, name: str, keep: int, dry_run: bool = False) -> CleanResult:
    """Remove the runs of a pipeline that nothing needs, and the outputs that no kept run used.

    Copies of tokenizers (``tokenizer.model``) are removed, too; the next run copies its own again.
    The newest runs stay, and the runs that published a version of the registry, that have a report
    by ``regard report``, or that the schedule refers to. They can still be resumed, reported,
    compared and traced.

    Args:
        workspace: contains the pipeline.
        name: the pipeline.
        keep: how many of the newest runs stay, at least 1.
        dry_run: whether to remove nothing.

    Raises:
        UserError: a run is in progress, or the metadata is damaged.
        OSError: a file cannot be removed.
    """
    paths = workspace.pipeline(name)
    with contextlib.ExitStack() as stack:
        if not dry_run:
            remedy = "Clean it when the run has ended"
            lock = stack.enter_context(lock_pipeline(paths.lock, remedy=remedy))
            with contextlib.suppress(OSError):  # the disk may be full
                lock.describe("of regard clean")
        runs = runs_of(paths)
        stores = _stores(paths, runs)
        if not dry_run:
            for metadata in stores:
                metadata.check()
        needed = _needed_runs(workspace, paths, runs, keep)
        records = [run.record() for run in runs if run.id in needed]
        owners = [str(record.executions_of) for record in records]
        executions = [metadata.needed_executions([*needed, *owners]) for metadata in stores]
        outputs = [*_unneeded_outputs(stores, executions), *_tokenizer_copies(paths)]
        folders = [*_unneeded_runs(paths, needed)]
        size = sum(map(size_of, (*outputs, *folders)))
        if not dry_run:
            removals = [*map(_remove_output, outputs), *map(_remove_run, folders)]
            for metadata, needed_ids in zip(stores, executions, strict=True):
                size += metadata.keep_executions(needed_ids)
            for error in filter(None, removals):
                raise error
    reasons = {run.id: needed.get(run.id) for run in runs} | {
        folder.name: None for folder in folders
    }
    return CleanResult(name, reasons, size)


def _remove_output(folder: Path) -> OSError | None:
    """Remove the folder of an output, renamed first so that no run finds a part; return an error.

    The error is raised later, because the others are removed nevertheless.
    """
    try:
        hidden = folder.with_name(folder.name.removesuffix(REMOVED) + REMOVED)
        os.rename(folder, hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        return error
    return None


def _remove_run(folder: Path) -> OSError | None:
    """Remove the folder of a run, its record last; return an error."""
    try:
        if (folder / RECORD).exists():
            owned_folders.remove_content(folder, RECORD)
        else:
            folder.rmdir()
    except OSError as error:
        return error
    return None


def _needed_runs(
    workspace: Workspace, paths: PipelinePaths, runs: Sequence[Run], keep: int
) -> dict[str, str]:
    """Return the ids of the runs that are kept, with the reasons."""
    needed: dict[str, str] = {}
    models = {workspace.registry / paths.root.name}
    for run in runs:
        if (run.directory / REPORT).exists():
            needed[run.id] = "has a report"
        if (model := run.pushed_model) is not None:
            models.add(model)
            if not model.parent.is_dir():  # a volume that is not mounted at the moment
                needed[run.id] = f"published to {model.parent}, which does not exist"
    state = read_state(paths.schedule)
    for reference in (state.trained, state.attempt):
        if reference is not None and reference.run:
            needed[reference.run] = "the schedule compares with it"
    for model in models:
        for version in Registry(model.parent).versions(model.name):
            record = read_record_or_empty(model / str(version))
            needed[record.run] = f"published {model.name}@{version}"
    return needed | {run.id: f"among the newest {keep}" for run in runs[-keep:]}


def _stores(paths: PipelinePaths, runs: Sequence[Run]) -> list[MetadataStore]:
    """Return the pipeline's own metadata, and the shared databases that its runs used."""
    stores = [metadata_store(MetadataConfig(), paths), *map(store_of_run, runs)]
    return [*{metadata.artifacts: metadata for metadata in stores}.values()]


def _unneeded_outputs(
    stores: Sequence[MetadataStore], executions: Sequence[set[int] | None]
) -> Iterator[Path]:
    """Yield the outputs of other executions; none of a store whose executions are not known."""
    for metadata, needed in zip(stores, executions, strict=True):
        if needed is not None:
            names = set(map(str, needed))
            yield from (path for path in metadata.own_outputs() if path.name not in names)


def _tokenizer_copies(paths: PipelinePaths) -> Iterator[Path]:
    """Yield the copies of given tokenizers. Only a run in progress reads them, and writes its own.

    A copy is in a folder that its SHA-256 names, see ``tokenizer_models``.
    """
    for folder in paths.tokenizers.iterdir() if paths.tokenizers.is_dir() else ():
        is_copy = re.fullmatch(r"[0-9a-f]{64}", folder.name.removesuffix(REMOVED))
        if is_copy and folder.is_dir() and not folder.is_symlink():
            yield folder


def _unneeded_runs(paths: PipelinePaths, needed: dict[str, str]) -> Iterator[Path]:
    """Yield the folders of other runs, and empty ones of killed runs; not folders of the user."""
    for folder in paths.runs.iterdir() if paths.runs.is_dir() else ():
        if folder.name in needed or folder.is_symlink() or not folder.is_dir():
            continue
        is_named_like_a_run = re.fullmatch(r"\d{8}-\d{6}(-\d+)?", folder.name)
        has_record = Run(folder).record().id == folder.name
        if has_record or (is_named_like_a_run and not any(folder.iterdir())):
            yield folder
