"""Makes TFX's launcher tell what it does, for every runner that uses it.

Both of TFX's runners look up ``launcher.Launcher`` when they start a node, so replacing that one
name for the time of a run is enough; nodes, artifacts and metadata stay TFX's own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from absl import logging
from tfx.orchestration.portable import cache_utils, launcher
from tfx.proto.orchestration import executable_spec_pb2

from components import events
from pipeline.runners import failures
from pipeline.runners.memory import PeakMemory


@dataclasses.dataclass
class Observation:
    """What was seen: the failure that ended the run, if there was one."""

    failure: failures.Failure | None = None


@contextlib.contextmanager
def observing() -> Iterator[Observation]:
    """While the block runs, every node emits ``node`` events (running, done, cached, failed)."""
    observation = Observation()
    plain_launcher, plain_cache = launcher.Launcher, cache_utils.get_cached_outputs
    plain_context = cache_utils.get_cache_context

    class Launcher(_ObservedLauncher):
        seen = observation

    launcher.Launcher = Launcher
    cache_utils.get_cached_outputs = lambda *args, **kwargs: _if_there(plain_cache(*args, **kwargs))
    cache_utils.get_cache_context = lambda *args, **kwargs: plain_context(
        *args, **{**kwargs, "executor_spec": _wherever(kwargs.get("executor_spec"))}
    )
    try:
        yield observation
    finally:
        launcher.Launcher = plain_launcher
        cache_utils.get_cached_outputs = plain_cache
        cache_utils.get_cache_context = plain_context


def _wherever(executor: Any) -> Any:
    """What executes a node, for the cache's key: where its Beam jobs run changes nothing."""
    if not isinstance(executor, executable_spec_pb2.BeamExecutableSpec):
        return executor
    return executor.python_executor_spec


def _if_there(outputs: dict[str, list[Any]] | None) -> dict[str, list[Any]] | None:
    """No cached result where its files are gone: the node runs again instead of failing others."""
    for artifacts in (outputs or {}).values():
        for artifact in artifacts:
            pushed = artifact.get_string_custom_property("pushed_destination")
            for path in filter(None, (artifact.uri, pushed)):
                if not Path(path).exists():
                    logging.info("The cached %s is gone; the node runs again.", path)
                    return None
    return outputs


class _ObservedLauncher(launcher.Launcher):
    """TFX's launcher, telling when a node starts, ends, is taken from the cache, or fails."""

    seen: Observation

    def _prepare_execution(self) -> Any:
        preparation = super()._prepare_execution()
        self._was_needed = preparation.is_execution_needed
        return preparation

    def launch(self) -> Any:
        """Runs the node as TFX does, and emits its events."""
        node = self._pipeline_node.node_info.id
        started = time.monotonic()
        self._was_needed = True
        _tell("node", node=node, state="running")
        memory = PeakMemory()

        def cost() -> dict[str, Any]:
            took = {"seconds": round(time.monotonic() - started, 3)}
            # A cached node only looked something up: what that cost is not what the work cost.
            return {**took, "peak_bytes": memory.bytes} if self._was_needed else took

        try:
            with memory:
                information = super().launch()
            if not self._was_needed:
                self._refuse_missing_inputs(information)
        except Exception as error:
            failure = failures.explain(error, node)
            self.seen.failure = failure
            traceback.print_exc()  # the log keeps it; Beam hands on only its text
            _tell("node", **failure.fields(), state="failed", **cost())
            raise
        state, took = "done" if self._was_needed else "cached", cost()
        uris, properties = self._outputs(information)
        _tell("node", node=node, state=state, **took, outputs=uris, properties=properties)
        return information

    def _refuse_missing_inputs(self, information: Any) -> None:
        """TFX passes over a node without inputs in silence; that would look like the cache."""
        if information is not None and information.execution_id is not None:
            with self._mlmd_connection as handle:
                (execution,) = handle.store.get_executions_by_id([information.execution_id])
            if execution.last_known_state in (execution.CACHED, execution.COMPLETE):
                return
        raise RuntimeError("the node's inputs are not there, so it could not run")

    def _outputs(self, information: Any) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """The URI and the custom properties of each output, as ML Metadata has them.

        A cached node's outputs are those of the older execution, which only the store knows.
        """
        uris: dict[str, str] = {}
        properties: dict[str, dict[str, Any]] = {}
        if information is None or information.execution_id is None:
            return uris, properties
        with self._mlmd_connection as handle:
            found = handle.store.get_events_by_execution_ids([information.execution_id])
            keys = {
                event.artifact_id: event.path.steps[0].key
                for event in found
                if event.type == event.OUTPUT
            }
            artifacts = handle.store.get_artifacts_by_id(list(keys))
        for artifact in artifacts:
            key = keys[artifact.id]
            uris[key] = artifact.uri
            properties[key] = {
                name: getattr(value, value.WhichOneof("value"))
                for name, value in artifact.custom_properties.items()
                if value.WhichOneof("value") in ("int_value", "double_value", "string_value")
            }
        return uris, properties


def _tell(kind: str, **fields: Any) -> None:
    """Emits an event; a full disk must not hide the error that it caused."""
    try:
        events.emit(kind, **fields)
    except OSError:
        logging.exception("The event could not be written: %s", fields)
