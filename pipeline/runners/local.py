"""Run a compiled pipeline on this machine, with TFX's LocalDagRunner or BeamDagRunner."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.proto.orchestration import pipeline_pb2


def run_nodes(ir: pipeline_pb2.Pipeline, runner: str) -> None:
    """Run every node; raise the error of the first node that fails.

    Args:
        ir: the compiled pipeline.
        runner: ``local`` for one node after another in this process, or ``beam`` for a Beam
            pipeline of the nodes, whose failure is a RuntimeError.
    """
    if runner == "local":
        from tfx.orchestration.local.local_dag_runner import LocalDagRunner

        LocalDagRunner().run_with_ir(ir)
        return
    from apache_beam.options.pipeline_options import StandardOptions

    # Without arguments, because with Beam arguments this is an older class that cannot run
    # components made from functions.
    from tfx.orchestration.beam.beam_dag_runner import BeamDagRunner

    # For pipelines without a runner, such as the orchestrating one: Beam's own default tries to
    # download another runner, Prism, from the network.
    StandardOptions.DEFAULT_RUNNER = "FnApiRunner"
    BeamDagRunner().run_with_ir(ir)
