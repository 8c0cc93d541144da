"""Find out without TFX that a run would take the outputs of every node from the cache.

The worker emits a digest of everything that TFX's cache keys depend on, and for each finished node
the digests of its outputs. If nothing differs from the newest run of the pipeline, the outputs of
all nodes are those of that run. In case of doubt, a worker finds out.
"""

import dataclasses
import json
from pathlib import Path

from regard.components.common.code_digest import package_digest
from regard.components.common.run_record import (
    CACHED,
    DONE,
    NOT_BLESSED,
    RUNNING,
    SUCCEEDED,
    Node,
    RunRecord,
)
from regard.core import events, provenance
from regard.core.errors import UserError
from regard.core.files import folder_digest
from regard.core.modules import importable
from regard.pipeline import cache_keys
from regard.pipeline.config import Config
from regard.pipeline.context import PipelineContext, local_context
from regard.pipeline.metadata_store import metadata_store
from regard.pipeline.runs.store import Run, runs_of


def plan_digest(context: PipelineContext, config: Config) -> str:
    """Return a digest of the data, the settings, the code and the libraries of a run."""
    with importable(config.pipeline.folder):
        code = package_digest(*cache_keys.code_modules(config))
    return cache_keys.digest(
        json.dumps(dataclasses.asdict(context), sort_keys=True),
        json.dumps(config.beam.arguments()),
        config.digest(),
        cache_keys.pinned_schema(config),
        code,
        json.dumps(provenance.stack_versions(), sort_keys=True),
    )


def repeat(config: Config, run: Run, publish_anyway: bool) -> RunRecord | None:
    """Write the events of a run whose nodes are all cached.

    Args:
        config: the configuration.
        run: the new run of the whole pipeline, the newest one. The caller holds the lock.
        publish_anyway: whether a model that the gate rejects is published as well.

    Returns:
        Fields of its record; None if a node may have to run, and nothing was written.
    """
    runs = runs_of(run.workspace.pipeline(run.name))
    if len(runs) < 2:
        return None
    earlier = runs[-2]
    record = earlier.record()
    if record.status not in (SUCCEEDED, NOT_BLESSED) or record.last is not None:
        return None
    state = earlier.progress()
    metadata = metadata_store(config.metadata, run.workspace.pipeline(run.name))
    try:
        context = local_context(config, run.workspace, publish_anyway)
        is_equal = (
            record.metadata == metadata.state()
            and state.origin.plan == plan_digest(context, config)
            and all(map(_is_intact, state.nodes.values()))
        )
    except (UserError, OSError):  # the worker reports it
        return None
    if not is_equal:
        return None
    run.log.write_text(f"All nodes are cached, as in run {earlier.id}.\n", encoding="utf-8")
    events.write(run.events, "origin", **state.origin.to_dict())
    events.write(run.events, "plan", nodes=list(state.nodes))
    for node in state.nodes.values():
        running = Node(name=node.name, state=RUNNING)
        cached = node.model_copy(update={"state": CACHED, "seconds": 0.0, "peak_bytes": None})
        events.write(run.events, "node", **running.to_event())
        events.write(run.events, "node", **cached.to_event())
    return RunRecord(metadata=record.metadata, executions_of=record.executions_of or earlier.id)


def _is_intact(node: Node) -> bool:
    """Whether a node succeeded, and its outputs are unchanged."""
    if node.state not in (DONE, CACHED):
        return False
    if not node.outputs or node.outputs.keys() != node.digests.keys():
        return False
    for properties in node.properties.values():
        published = properties.get("pushed_destination")
        if published and not Path(str(published)).exists():
            return False
    return all(folder_digest(uri) == node.digests[key] for key, uri in node.outputs.items())
