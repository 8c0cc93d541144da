"""Emit events about the nodes that TFX's launcher runs, and verify the outputs that it finds again.

Both of TFX's runners look up ``launcher.Launcher`` when they start a node, so replacing that name
during a run is sufficient.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from absl import logging
from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration.portable import cache_utils, launcher
from tfx.proto.orchestration.executable_spec_pb2 import BeamExecutableSpec as _BeamExecutor

from regard.components.common.run_record import CACHED, DONE, FAILED, RUNNING, Node
from regard.core import events
from regard.core.errors import Failure
from regard.core.files import folder_digest
from regard.pipeline.runners.failures import explain
from regard.pipeline.runners.job_service import check_job_service

DIGEST = "content_digest"  # the custom property of an artifact
_LATER_PROPERTIES = (DIGEST, "is_external", "tfx_version")  # which TFX adds as it publishes
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
    """The failure that ended the run, if any, and the digests of the outputs by URI."""

    failure: Failure | None = None
    digests: dict[str, str] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def observe_nodes(own_root: Path | None = None) -> Iterator[Observation]:
    """Emit events when nodes start, finish, are cached, or fail while the block runs.

    Args:
        own_root: Only outputs in this folder are taken from the cache; None: all are.
    """
    observation = Observation()
    original_launcher, original_cache = launcher.Launcher, cache_utils.get_cached_outputs
    original_context = cache_utils.get_cache_context

    class Launcher(_ObservedLauncher):
        observed = observation

    names: dict[str, set[str]] = {}  # of the outputs, by cache key

    def get_cache_context(*args: Any, **kwargs: Any) -> Any:
        # Where the Beam jobs of a node run does not affect its outputs.
        if isinstance(executor := kwargs.get("executor_spec"), _BeamExecutor):
            kwargs["executor_spec"] = executor.python_executor_spec
        context = original_context(*args, **kwargs)
        names[context.name] = set(kwargs.get("output_artifacts") or ())
        return context

    def get_cached_outputs(metadata_handle: Any, cache_context: Any) -> Any:
        outputs = original_cache(metadata_handle, cache_context) or {}
        if set(outputs) != names[cache_context.name]:
            return None  # the node runs again
        for artifact in itertools.chain.from_iterable(outputs.values()):
            if own_root is not None and not Path(artifact.uri).is_relative_to(own_root):
                return None
            if not _is_intact(artifact, observation.digests):
                return None
        return outputs

    launcher.Launcher = Launcher
    cache_utils.get_cached_outputs = get_cached_outputs
    cache_utils.get_cache_context = get_cache_context
    try:
        yield observation
    finally:
        launcher.Launcher = original_launcher
        cache_utils.get_cached_outputs = original_cache
        cache_utils.get_cache_context = original_context


def _is_intact(artifact: Any, digests: dict[str, str]) -> bool:
    """Return whether a cached output still exists, unchanged; add its digest."""
    pushed = artifact.get_string_custom_property("pushed_destination")
    if pushed and not Path(pushed).exists():
        logging.info("The cached output %s no longer exists. The node runs again.", pushed)
        return False
    with contextlib.suppress(OSError):  # what cannot be read is damaged
        if artifact.get_string_custom_property(DIGEST) == _digest(artifact.mlmd_artifact, digests):
            return True
    text = f"{artifact.uri} was changed or damaged after it was written; it is made again"
    events.emit_if_possible("warning", node=artifact.producer_component, text=text)
    return False


def _digest(artifact: metadata_store_pb2.Artifact, digests: dict[str, str]) -> str:
    """Return the digest of an artifact's files and properties, without those with decimals.

    ML Metadata rounds them. The digest of the files alone is added to ``digests``.

    Raises:
        OSError: a file cannot be read.
    """
    texts = sorted(
        f"{name} {value}"
        for name, value in [*artifact.properties.items(), *artifact.custom_properties.items()]
        if name not in _LATER_PROPERTIES and not value.HasField("double_value")
    )
    files = digests[artifact.uri] = folder_digest(artifact.uri)
    return hashlib.sha256("\n".join([files, *texts]).encode()).hexdigest()


class _ObservedLauncher(launcher.Launcher):
    """TFX's launcher, with events."""

    observed: Observation

    def _prepare_execution(self) -> Any:
        preparation = super()._prepare_execution()
        self._is_needed = preparation.is_execution_needed
        return preparation

    def _run_executor(self, execution_info: Any) -> Any:
        """Add the digests of the outputs before TFX publishes them, all at once."""
        if isinstance(self._executor_spec, _BeamExecutor):
            placeholders = self._executor_spec.beam_pipeline_args_placeholders
            check_job_service([argument.value.string_value for argument in placeholders])
        try:
            output = super()._run_executor(execution_info)
        except SystemExit as error:  # TFX would leave the execution unfinished
            raise RuntimeError(f"The code of the node called sys.exit({error}).") from error
        for artifacts in output.output_artifacts.values():
            for artifact in artifacts.artifacts:
                artifact.custom_properties[DIGEST].string_value = _digest(
                    artifact, self.observed.digests
                )
        return output

    def launch(self) -> Any:
        """Run the node and emit its events."""
        node = Node(name=self._pipeline_node.node_info.id, state=RUNNING)
        started = time.monotonic()
        self._is_needed = True
        events.emit_if_possible("node", **node.to_event())
        memory = PeakMemory()

        def end(state: str) -> None:
            node.state, node.seconds = state, round(time.monotonic() - started, 3)
            if self._is_needed:  # a cached node has only looked up its outputs
                node.peak_bytes = memory.bytes

        try:
            with memory:
                information = super().launch()
            if not self._is_needed:
                self._require_inputs(information)
        except Exception as error:
            end(FAILED)
            failure = explain(error, node.name)
            self.observed.failure = failure
            traceback.print_exc()  # for the log; Beam passes on only the text
            events.emit_if_possible("node", **{**failure.to_dict(), **node.to_event()})
            raise
        end(DONE if self._is_needed else CACHED)
        node.outputs, node.properties = self._outputs(information)
        digests = self.observed.digests
        node.digests = {key: digests.get(uri, "") for key, uri in node.outputs.items()}
        events.emit_if_possible("node", **node.to_event())
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
        """Return the URI and the custom properties of each output, from ML Metadata.

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
