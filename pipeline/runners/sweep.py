"""Takes away what killed and failed runs left behind: it can be gigabytes, and nothing reads it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline


def sweep(pipeline: Pipeline) -> list[Path]:
    """Removes the output folders of executions that did not end well, and returns them.

    Only for a pipeline that is not running: the caller holds its lock. A node that starts again
    gets a new number and new folders from TFX, so that these would stay for ever.
    """
    from ml_metadata.proto import metadata_store_pb2
    from tfx.orchestration.metadata import Metadata

    root = Path(pipeline.pipeline_info.pipeline_root)
    if not root.is_dir():
        return []
    state = metadata_store_pb2.Execution
    with Metadata(pipeline.metadata_connection_config) as handle:
        left = {
            str(execution.id)
            for execution in handle.store.get_executions()
            if execution.last_known_state not in (state.COMPLETE, state.CACHED)
        }
    # <node>/<output>/<execution>, and TFX's own <node>/.system/<purpose>/<execution>
    folders = [*root.glob("*/*/*"), *root.glob("*/.system/*/*")]
    removed = [path for path in folders if path.name in left and path.is_dir()]
    for path in removed:
        shutil.rmtree(path, ignore_errors=True)
    return removed
