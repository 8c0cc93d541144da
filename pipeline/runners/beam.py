"""Runs a compiled pipeline as a Beam pipeline itself, with TFX's BeamDagRunner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.proto.orchestration import pipeline_pb2

RUNNER = "FnApiRunner"


def run(ir: pipeline_pb2.Pipeline) -> None:
    """Runs every node; raises a RuntimeError when one fails."""
    # Only the runner without arguments reads the compiled pipeline; the one with Beam arguments
    # is an older class that cannot run components made from functions.
    from tfx.orchestration.beam.beam_dag_runner import BeamDagRunner

    with _in_memory_by_default():
        BeamDagRunner().run_with_ir(ir)


@contextlib.contextmanager
def _in_memory_by_default() -> Iterator[None]:
    """Beam's in-process runner for the pipelines that name none, such as the orchestrating one.

    Beam's own default first tries to download another runner, Prism, from the network.
    """
    from apache_beam.options.pipeline_options import StandardOptions

    before = StandardOptions.DEFAULT_RUNNER
    StandardOptions.DEFAULT_RUNNER = RUNNER
    try:
        yield
    finally:
        StandardOptions.DEFAULT_RUNNER = before
