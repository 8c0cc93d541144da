"""Find out without TFX that a run would take the outputs of every node from the cache.

The worker emits a digest of everything that TFX's cache keys depend on, and for each finished node
the digests of its outputs. If nothing differs from the newest run of the pipeline, the outputs of
all nodes are those of that run. In case of doubt, a worker finds out.
"""

import dataclasses
import json
from pathlib import Path

from regard.components.common.code_digest import package_digest
from regard.core import events, provenance
from regard.core.errors import UserError
from regard.core.files import file_state, folder_digest
from regard.pipeline import cache_keys, progress, run_store
from regard.pipeline.config import Config
from regard.pipeline.context import PipelineContext, local_context
from regard.pipeline.progress import CACHED, DONE, RUNNING, NodeProgress
from regard.pipeline.run_store import Run, RunRecord


def plan_digest(context: PipelineContext, config: Config) -> str:
    """Return a digest of the data, the settings, the code and the libraries of a run."""
    return cache_keys.digest(
        json.dumps(dataclasses.asdict(context), sort_keys=True),
        config.digest(),
        cache_keys.pinned_schema(config),
        package_digest(*cache_keys.code_modules(config)),
        json.dumps(provenance.stack_versions(), sort_keys=True),
    )


def metadata_state(run: Run) -> list[int]:
    """Return the state of ML Metadata's file, which each execution changes.

    Raises:
        OSError: there is no such file.
    """
    return [*file_state(run.workspace.pipeline(run.name).metadata)]


def repeat(config: Config, run: Run, publish_anyway: bool) -> RunRecord:
    """Write the events of a run whose nodes are all cached.

    Args:
        config: the configuration.
        run: the new run of the whole pipeline, the newest one. The caller holds the lock.
        publish_anyway: whether a model that the gate rejects is published as well.

    Returns:
        Fields of its record; empty if a node may have to run, and nothing was written.
    """
    earlier = run_store.runs_of(run.workspace.pipeline(run.name))[-2:-1]
    record = earlier[0].record() if earlier else {}
    is_complete = record.get("status") in (run_store.SUCCEEDED, run_store.NOT_BLESSED)
    if not is_complete or record["last"] is not None:
        return {}
    state = progress.read(earlier[0].events)
    try:
        context = local_context(config, run.workspace, publish_anyway)
        is_equal = (
            record.get("metadata") == metadata_state(run)
            and state.origin.get("plan") == plan_digest(context, config)
            and all(map(_is_intact, state.nodes.values()))
        )
    except (UserError, OSError):  # the worker reports it
        return {}
    if not is_equal:
        return {}
    run.log.write_text(f"All nodes are cached, as in run {earlier[0].id}.\n", encoding="utf-8")
    events.write(run.events, "origin", **state.origin)
    events.write(run.events, "plan", nodes=[*state.nodes])
    for node in state.nodes.values():
        results = {name: getattr(node, name) for name in ("outputs", "properties", "digests")}
        events.write(run.events, "node", node=node.name, state=RUNNING)
        events.write(run.events, "node", node=node.name, state=CACHED, seconds=0.0, **results)
    return {
        "metadata": record["metadata"],
        "executions_of": record.get("executions_of", earlier[0].id),
    }


def _is_intact(node: NodeProgress) -> bool:
    """Whether a node succeeded, and its outputs are unchanged."""
    published = [one.get("pushed_destination") for one in node.properties.values()]
    return (
        node.state in (DONE, CACHED)
        and set(node.outputs) == set(node.digests) != set()
        and all(Path(str(path)).exists() for path in published if path)
        and all(folder_digest(uri) == node.digests[key] for key, uri in node.outputs.items())
    )
