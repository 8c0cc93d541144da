"""Runs a compiled pipeline with TFX's LocalDagRunner: one node after the other, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.proto.orchestration import pipeline_pb2


def run(ir: pipeline_pb2.Pipeline) -> None:
    """Runs every node; raises what the first failing one raises."""
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner

    LocalDagRunner().run_with_ir(ir)
