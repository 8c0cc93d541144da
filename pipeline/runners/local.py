"""Run a compiled pipeline with TFX's LocalDagRunner: one node after another, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.proto.orchestration import pipeline_pb2


def run_locally(ir: pipeline_pb2.Pipeline) -> None:
    """Run every node; raise the error of the first node that fails."""
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner

    LocalDagRunner().run_with_ir(ir)
