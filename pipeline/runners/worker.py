"""The process that runs a pipeline: ``python -m pipeline.runners.worker`` (see ``supervise``).

It alone imports TFX and TensorFlow; all it prints goes to the run's log, and what the user is to
see goes through :mod:`components.events`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from components import events
from serving.importing import uncollected

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline
    from tfx.proto.orchestration import pipeline_pb2

OK, BUG, USER, INTERRUPTED = 0, 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Runs the pipeline that the arguments name, and returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.watch_stdin:
        _end_with_parent()
    _stop_on_signals()

    def make() -> Pipeline:
        with uncollected():
            import yaml

            from pipeline.config import restored
            from pipeline.graph import create_pipeline
            from pipeline.runners import parts
            from pipeline.tuning.graph import create_tuning
            from pipeline.workspace import Workspace

        # The parent has resolved paths and variables; a "$" in the result is a "$".
        resolved = yaml.safe_load(options.config.read_text(encoding="utf-8"))
        config, workspace = restored(resolved), Workspace(options.workspace)
        if options.first is not None and parts.runs_again("Trainer", options.first):
            # To train again is to begin again, and not to go on from a checkpoint.
            shutil.rmtree(workspace.pipeline(config.name).checkpoints, ignore_errors=True)
        if options.tune and options.first is not None:
            shutil.rmtree(workspace.pipeline(config.name).tuning, ignore_errors=True)
        made = (create_tuning if options.tune else create_pipeline)(config, workspace)
        _tell_origin(made)
        return made

    return run(make, options.runner, options.run.name, options.first, options.last)


def run(
    make: Callable[[], Pipeline],
    runner: str = "local",
    run_id: str | None = None,
    first: str | None = None,
    last: str | None = None,
) -> int:
    """Makes a pipeline and runs it, or a part of it, telling by events how it goes.

    Args:
        make: builds the TFX pipeline; called here so that its errors are told, too.
        runner: ``local`` or ``beam``.
        run_id: the id that ML Metadata gets for this run.
        first: run again from this node on, with everything that depends on it.
        last: run only this node and what it needs.

    Returns:
        The exit status: 0, 1 (a bug), 2 (the user can mend it) or 130 (interrupted).
    """
    failure = None
    try:
        _tell("progress", node="", text="importing TFX and TensorFlow")
        with uncollected():
            from pipeline.runners import observe
            from pipeline.runners.failures import explain
            from pipeline.runners.sweep import sweep

        # TFX calls what protobuf deprecates, and protobuf blames TFX's caller, which is us.
        warnings.filterwarnings("ignore", r"label\(\) is deprecated", DeprecationWarning)
        try:
            pipeline = make()
            ir = compile_part(pipeline, run_id, first, last)
            for path in sweep(pipeline):
                print(f"Removed {path}: the run that made it did not end well.")
            with observe.observing() as seen:
                try:
                    _execute(ir, runner)
                finally:
                    failure = seen.failure
        except Exception as error:
            if failure is None:  # it was no node that failed: tell it here, with the log's help
                traceback.print_exc()
                failure = explain(error)
                _tell("run", state="failed", **failure.fields())
            return USER if failure.user else BUG
    except KeyboardInterrupt:
        print("Interrupted.", flush=True)
        return INTERRUPTED
    return OK


def compile_part(
    pipeline: Pipeline, run_id: str | None, first: str | None, last: str | None
) -> pipeline_pb2.Pipeline:
    """Compiles a pipeline to TFX's intermediate form and applies ``--from`` and ``--to``."""
    from tfx.dsl.compiler import compiler, constants
    from tfx.orchestration.portable import runtime_parameter_utils

    from pipeline.runners import parts

    ir = compiler.Compiler().compile(pipeline)
    if first is not None:
        parts.run_again_from(ir, parts.check_node(first, parts.node_ids(ir), "--from"))
    if last is not None:
        parts.keep_up_to(ir, parts.check_node(last, parts.node_ids(ir), "--to"))
    if run_id is not None:
        runtime_parameter_utils.substitute_runtime_parameter(
            ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
        )
    _tell("plan", nodes=parts.node_ids(ir))
    return ir


def _tell_origin(pipeline: Pipeline) -> None:
    """The digests of the data, the version in production, and the model that it starts from.

    Only the made graph knows them.
    """
    properties = {node.id: node.exec_properties for node in pipeline.components}
    trained = json.loads(properties["Trainer"]["custom_config"])
    _tell(
        "origin",
        data_fingerprint=properties["CorpusGen"]["fingerprint"],
        word_vectors=trained["vectors"],
        parent=properties["Predictor"]["production_version"] or None,
        start=trained["start"] or None,
    )


def _execute(ir: pipeline_pb2.Pipeline, runner: str) -> None:
    if runner == "beam":
        from pipeline.runners import beam as chosen
    else:
        from pipeline.runners import local as chosen  # type: ignore[no-redef]
    chosen.run(ir)


def _tell(kind: str, **fields: object) -> None:
    with contextlib.suppress(OSError):  # on a full disk the error itself matters more
        events.emit(kind, **fields)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipeline.runners.worker")
    parser.add_argument("--config", required=True, type=Path, help="the resolved configuration")
    parser.add_argument("--run", required=True, type=Path, help="the folder of the run")
    parser.add_argument("--workspace", required=True, type=Path, help="the folder REGARD_HOME")
    parser.add_argument("--runner", choices=["local", "beam"], default="local")
    parser.add_argument("--from", dest="first", metavar="NODE")
    parser.add_argument("--to", dest="last", metavar="NODE")
    parser.add_argument("--tune", action="store_true", help="with a Tuner beside the Trainer")
    parser.add_argument("--watch-stdin", action="store_true", help="end when stdin is closed")
    return parser


def _stop_on_signals() -> None:
    """The first SIGINT or SIGTERM interrupts the main thread; later ones are its parent's work."""

    def interrupt(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


def _end_with_parent() -> None:
    """Ends this process and its children at once when the parent, who holds our stdin, is gone."""

    # A descriptor of our own: the processes that nodes start get an empty standard input.
    parent = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)

    def watch() -> None:
        while os.read(parent, 1024):
            pass
        print("The process that started this run is gone: ending.", flush=True)
        if os.getpgrp() == os.getpid():  # a group of our own, with our children and nobody else
            with contextlib.suppress(ProcessLookupError):
                os.killpg(0, signal.SIGKILL)
        os._exit(BUG)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's own end: Beam's and TensorFlow's threads may crash in it, or hang
    # in it after an interruption, when everything of ours is long written.
    os._exit(status)
