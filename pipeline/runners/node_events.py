"""Emit events about the nodes that TFX's launcher runs, and verify the outputs that it finds again.

Both of TFX's runners look up ``launcher.Launcher`` when they start a node, so replacing that name
during a run is sufficient.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from absl import logging
from tfx.orchestration.portable import cache_utils, launcher
from tfx.proto.orchestration import executable_spec_pb2

from regard.components.common import events
from regard.components.common.files import folder_digest
from regard.pipeline.progress import Failure
from regard.pipeline.runners.failures import explain

DIGEST = "content_digest"  # the custom property of an artifact
MEMORY_INTERVAL_SECONDS = 1.0  # each measurement reads the whole process table


class PeakMemory:
    """Measures the memory of this process and its children during a block, in a thread.

    :attr:`bytes` is the largest sum of resident set sizes. It includes memory of earlier work,
    counts shared pages once per process, and misses peaks between two measurements.
    """

    def __init__(self, interval_seconds: float = MEMORY_INTERVAL_SECONDS):
        self.bytes = 0
        self._interval = interval_seconds
        self._process = psutil.Process()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="peak-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._measure()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()
        self._measure()

    def _run(self) -> None:
        while not self._end.wait(self._interval):
            self._measure()

    def _measure(self) -> None:
        total = self._process.memory_info().rss
        for child in self._process.children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has ended
                total += child.memory_info().rss
        self.bytes = max(self.bytes, total)


@dataclasses.dataclass
class Observation:
    """The failure that ended the run, if any."""

    failure: Failure | None = None


@contextlib.contextmanager
def observe_nodes() -> Iterator[Observation]:
    """Emit events when nodes start, finish, are cached, or fail while the block runs."""
    observation = Observation()
    original_launcher, original_cache = launcher.Launcher, cache_utils.get_cached_outputs
    original_context = cache_utils.get_cache_context

    class Launcher(_ObservedLauncher):
        observed = observation

    launcher.Launcher = Launcher
    cache_utils.get_cached_outputs = lambda *args, **kwargs: _existing_outputs(
        original_cache(*args, **kwargs)
    )
    cache_utils.get_cache_context = lambda *args, **kwargs: original_context(
        *args, **{**kwargs, "executor_spec": _without_beam_options(kwargs.get("executor_spec"))}
    )
    try:
        yield observation
    finally:
        launcher.Launcher = original_launcher
        cache_utils.get_cached_outputs = original_cache
        cache_utils.get_cache_context = original_context


def _without_beam_options(executor: Any) -> Any:
    """The executor for the cache key: where its Beam jobs run does not affect the outputs."""
    if not isinstance(executor, executable_spec_pb2.BeamExecutableSpec):
        return executor
    return executor.python_executor_spec


def _existing_outputs(outputs: dict[str, list[Any]] | None) -> dict[str, list[Any]] | None:
    """The cached outputs; None if files are missing or changed, so that the node runs again."""
    for artifact in itertools.chain.from_iterable((outputs or {}).values()):
        pushed = artifact.get_string_custom_property("pushed_destination")
        for path in filter(None, (artifact.uri, pushed)):
            if not Path(path).exists():
                logging.info("The cached output %s no longer exists. The node runs again.", path)
                return None
        digest = artifact.get_string_custom_property(DIGEST)
        if digest and _digest(artifact.uri) != digest:
            text = f"{artifact.uri} was changed or damaged after it was written; it is made again"
            events.emit_if_possible("warning", node=artifact.producer_component, text=text)
            return None
    return outputs


def _digest(uri: str) -> str:
    """The digest of an artifact's files; empty if one cannot be read."""
    try:
        return folder_digest(uri)
    except OSError:
        return ""


class _ObservedLauncher(launcher.Launcher):
    """TFX's launcher, with events."""

    observed: Observation

    def _prepare_execution(self) -> Any:
        preparation = super()._prepare_execution()
        self._is_needed = preparation.is_execution_needed
        return preparation

    def launch(self) -> Any:
        """Run the node and emit its events."""
        node = self._pipeline_node.node_info.id
        started = time.monotonic()
        self._is_needed = True
        events.emit_if_possible("node", node=node, state="running")
        memory = PeakMemory()

        def measure_cost() -> dict[str, float]:
            cost: dict[str, float] = {"seconds": round(time.monotonic() - started, 3)}
            if self._is_needed:  # a cached node has only looked up its outputs
                cost["peak_bytes"] = memory.bytes
            return cost

        try:
            with memory:
                information = super().launch()
            if not self._is_needed:
                self._require_inputs(information)
        except Exception as error:
            failure = explain(error, node)
            self.observed.failure = failure
            traceback.print_exc()  # for the log; Beam passes on only the text
            events.emit_if_possible("node", **failure, state="failed", **measure_cost())
            raise
        state, cost = "done" if self._is_needed else "cached", measure_cost()
        uris, properties = self._outputs(information)
        events.emit_if_possible(
            "node", node=node, state=state, **cost, outputs=uris, properties=properties
        )
        return information

    def _require_inputs(self, information: Any) -> None:
        """Raise an error for a node without inputs, which TFX skips silently."""
        if information is not None and information.execution_id is not None:
            with self._mlmd_connection as handle:
                (execution,) = handle.store.get_executions_by_id([information.execution_id])
            if execution.last_known_state in (execution.CACHED, execution.COMPLETE):
                return
        raise RuntimeError("The inputs of the node are missing.")

    def _outputs(self, information: Any) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """The URI and the custom properties of each output, from ML Metadata.

        The outputs of a cached node are those of an earlier execution.
        """
        uris: dict[str, str] = {}
        properties: dict[str, dict[str, Any]] = {}
        if information is None or information.execution_id is None:
            return uris, properties
        with self._mlmd_connection as handle:
            output_events = handle.store.get_events_by_execution_ids([information.execution_id])
            keys = {
                event.artifact_id: event.path.steps[0].key
                for event in output_events
                if event.type == event.OUTPUT
            }
            artifacts = handle.store.get_artifacts_by_id(list(keys))
            if self._is_needed:  # new files; a later run that finds them again verifies them
                for artifact in artifacts:
                    artifact.custom_properties[DIGEST].string_value = _digest(artifact.uri)
                handle.store.put_artifacts(artifacts)
        for artifact in artifacts:
            key = keys[artifact.id]
            uris[key] = artifact.uri
            properties[key] = {
                name: getattr(value, value.WhichOneof("value"))
                for name, value in artifact.custom_properties.items()
                if value.WhichOneof("value") in ("int_value", "double_value", "string_value")
                and name != DIGEST
            }
        return uris, properties
