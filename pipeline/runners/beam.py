"""Run a compiled pipeline as a Beam pipeline with TFX's BeamDagRunner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.proto.orchestration import pipeline_pb2

RUNNER = "FnApiRunner"


def run_with_beam(ir: pipeline_pb2.Pipeline) -> None:
    """Run every node; raise a RuntimeError when one fails."""
    # Without arguments, because with Beam arguments this is an older class that cannot run
    # components made from functions.
    from tfx.orchestration.beam.beam_dag_runner import BeamDagRunner

    with _default_to_in_process_runner():
        BeamDagRunner().run_with_ir(ir)


@contextlib.contextmanager
def _default_to_in_process_runner() -> Iterator[None]:
    """Use Beam's in-process runner for pipelines without a runner, such as the orchestrating one.

    Beam's own default tries to download another runner, Prism, from the network.
    """
    from apache_beam.options.pipeline_options import StandardOptions

    original = StandardOptions.DEFAULT_RUNNER
    StandardOptions.DEFAULT_RUNNER = RUNNER
    try:
        yield
    finally:
        StandardOptions.DEFAULT_RUNNER = original
