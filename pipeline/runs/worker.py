"""The worker process of a run: ``python -m regard.pipeline.runs.worker FOLDER``, see ``supervise``.

Only the worker imports TFX and TensorFlow. Its output goes to the run's log; messages for the user
are events (:mod:`regard.core.events`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import sys
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common.run_record import FAILED, Origin, RunRecord
from regard.components.settings.trainer import RUN
from regard.core import events, owned_folders
from regard.core.garbage_collection import without_gc
from regard.core.processes import end_with_parent
from regard.core.yaml_text import from_yaml
from regard.pipeline import metadata_file
from regard.pipeline.config import config_from_values
from regard.pipeline.config.config import TUNER
from regard.pipeline.context import local_context
from regard.pipeline.metadata_store import MetadataStore, store_of_run
from regard.pipeline.runners import local
from regard.pipeline.runners.failures import explain
from regard.pipeline.runs.cached import plan_digest
from regard.pipeline.runs.store import Run

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline
    from tfx.proto.orchestration import pipeline_pb2

_UNUSED = ".unused-"  # in the names that `owned_folders.discard` gives to other folders
OK = 0
BUG = 1
USER = 2
INTERRUPTED = 130


def main(directory: str) -> int:
    """Run the pipeline of a run's folder, and return the exit status."""
    _stop_on_signals()
    stored_run = Run(Path(directory))
    record = stored_run.record()
    metadata = store_of_run(stored_run)
    build = functools.partial(_build, stored_run, record, metadata)
    run_id = record.context or stored_run.id
    status = run(build, record.runner, run_id, record.first, record.last, metadata.is_shared)
    if status == OK:
        metadata.store_copy()
    return status


def _build(stored_run: Run, record: RunRecord, metadata: MetadataStore) -> Pipeline:
    """Build the pipeline of a run, or of its search, and emit what the run starts from."""
    workspace = stored_run.workspace
    paths = workspace.pipeline(stored_run.name)
    config = config_from_values(from_yaml(stored_run.config.read_text(encoding="utf-8")))
    metadata.check()
    if record.last == TUNER:
        from regard.pipeline.tuning.graph import create_tuning  # imports TFX

        pipeline = create_tuning(config, workspace, restart=record.first is not None)
        _emit_origin(pipeline)
        return pipeline
    with without_gc():
        from regard.pipeline.graph import build_pipeline  # imports TFX

    context = local_context(config, workspace, record.publish_anyway)
    # A repeated training starts from scratch, not from its last checkpoint.
    if _repeats_training(config.nodes, record.first, record.last):
        _discard_checkpoints(paths.checkpoints, context.keys.checkpoint)
    pipeline = build_pipeline(config, context)
    _emit_origin(pipeline, plan_digest(context, config))
    return pipeline


def _discard_checkpoints(checkpoints: Path, key: str) -> None:
    """Remove the checkpoints of a training, or rename them if they are not marked as Regard's."""
    # The precision may be a suffix.
    folders = [checkpoints / key, *checkpoints.glob(f"{key}-*")]
    for folder in folders:
        if _UNUSED not in folder.name:
            owned_folders.discard(folder, owned_folders.CHECKPOINTS)


def run(
    build: Callable[[], Pipeline],
    runner: str = "local",
    run_id: str = "",
    first: str | None = None,
    last: str | None = None,
    own_outputs_only: bool = False,
) -> int:
    """Build and run a pipeline, or a part of it, and report its progress as events.

    Args:
        build: Builds the TFX pipeline; called here so that its errors are reported as well.
        runner: ``local`` or ``beam``.
        run_id: The id of the run in ML Metadata.
        first: Run this node and its descendants again.
        last: Run only this node and its ancestors.
        own_outputs_only: Whether only outputs in the pipeline root are taken from the cache, not
            those of a pipeline of the same name in another workspace.

    Returns:
        The exit status: 0, 1 (a bug), 2 (a user error) or 130 (interrupted).
    """
    failure = None
    try:
        events.emit_if_possible("progress", node="", text="importing TFX and TensorFlow")
        with without_gc():
            with hidden_packages("jax", "matplotlib"):
                import tensorflow  # noqa: F401

            from regard.pipeline.runners import node_events  # imports TFX

        # TFX calls a deprecated method of protobuf, which attributes the warning to TFX's caller.
        warnings.filterwarnings("ignore", r"label\(\) is deprecated", DeprecationWarning)
        try:
            pipeline = build()
            ir = compile_part(pipeline, run_id, first, last)
            for path in remove_incomplete_outputs(pipeline):
                print(f"Removed {path}, an incomplete output of an earlier run.")
            root = Path(pipeline.pipeline_info.pipeline_root) if own_outputs_only else None
            with node_events.observe_nodes(root) as observation:
                try:
                    local.run_nodes(ir, runner)
                finally:
                    failure = observation.failure
        except (Exception, SystemExit) as error:  # the user's code may call sys.exit(0)
            if failure is None:  # the error occurred outside the nodes
                traceback.print_exc()
                failure = explain(error)
                events.emit_if_possible("run", state=FAILED, **failure.to_dict())
            return USER if failure.user else BUG
    except KeyboardInterrupt:
        print("Interrupted.", flush=True)
        return INTERRUPTED
    return OK


@contextlib.contextmanager
def hidden_packages(*names: str) -> Iterator[None]:
    """Make imports of packages fail while the block runs, unless they were imported before.

    Keras and TensorFlow Lite import JAX and pyplot if they are installed. Without them the imports
    of a run take 3.1 instead of 3.5 s of processor time, and 126 MB less memory. Unnecessary once
    they import them when they are used.
    """
    new = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(new))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in new:
            del sys.modules[name]


def compile_part(
    pipeline: Pipeline, run_id: str, first: str | None, last: str | None
) -> pipeline_pb2.Pipeline:
    """Compile a pipeline for TFX's runners, and apply ``--from`` and ``--to``."""
    from tfx.dsl.compiler import compiler, constants
    from tfx.orchestration.portable import runtime_parameter_utils

    ir = compiler.Compiler().compile(pipeline)
    if first is not None:
        local.disable_cache_from(ir, first)
    if last is not None:
        local.remove_unneeded_nodes(ir, last)
    parameters = {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    runtime_parameter_utils.substitute_runtime_parameter(ir, parameters)
    events.emit_if_possible("plan", nodes=local.node_ids(ir))
    return ir


def remove_incomplete_outputs(pipeline: Pipeline) -> list[Path]:
    """Remove the pipeline's output folders that no completed execution wrote, and return them.

    They can take gigabytes, and a repeated node writes to new folders. A folder of someone else, or
    of an earlier version of Regard without metadata, is renamed if an execution may get its number.
    The caller must hold the lock of the pipeline.
    """
    from ml_metadata.proto import metadata_store_pb2
    from tfx.orchestration.metadata import Metadata

    root = Path(pipeline.pipeline_info.pipeline_root)
    if not root.is_dir():
        return []
    state = metadata_store_pb2.Execution
    name, connection = pipeline.pipeline_info.pipeline_name, pipeline.metadata_connection_config
    with Metadata(connection) as handle:
        # Another pipeline may use the same database.
        context = handle.store.get_context_by_type_and_name("pipeline", name)
        executions = handle.store.get_executions_by_context(context.id) if context else []
    states = {str(execution.id): execution.last_known_state for execution in executions}
    finished = (state.COMPLETE, state.CACHED)
    complete = {name for name, last_state in states.items() if last_state in finished}
    metadata = Path(connection.sqlite.filename_uri) if connection.HasField("sqlite") else None
    outputs = metadata_file.own_outputs(root, metadata, name)
    leftovers = [path for path in outputs if path.name not in complete]
    for path in leftovers:
        shutil.rmtree(path, ignore_errors=True)
    for node in pipeline.components:
        for path in (root / node.id).glob("*/*"):
            if path.name.isdecimal() and path.name not in states:
                path.rename(path.with_name(f"unused-{path.name}-{uuid.uuid4().hex[:8]}"))
    return leftovers


def _repeats_training(nodes: Sequence[str], first: str | None, last: str | None) -> bool:
    """Whether ``--from`` and ``--to`` run the Trainer again."""
    before, after = (nodes.index(name) if name else None for name in (first, last))
    trainer = nodes.index("Trainer")
    return before is not None and before <= trainer and (after is None or trainer <= after)


def _emit_origin(pipeline: Pipeline, plan: str = "") -> None:
    """Emit the digests of the data, the version in production, and other models that are read."""
    properties = {node.id: node.exec_properties for node in pipeline.components}
    training = json.loads(properties["Trainer"]["custom_config"])[RUN]
    models = properties.get("Augmenter", {}).get("models")
    origin = Origin(
        data_fingerprint=properties["CorpusGen"]["fingerprint"],
        word_vectors=training["vectors"],
        parent=properties["Predictor"]["production_version"] or None,
        start=training["start"] or None,
        ensemble=training["ensemble"],
        augmentation=list(json.loads(models).values()) if models else [],
        plan=plan,
    )
    events.emit_if_possible("origin", **origin.to_dict())


def _stop_on_signals() -> None:
    """Interrupt the main thread at the first SIGINT or SIGTERM; ignore further ones."""

    def interrupt(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


if __name__ == "__main__":
    end_with_parent()
    status = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    # Skip the interpreter's shutdown, in which threads of Beam and TensorFlow may crash or hang.
    os._exit(status)
