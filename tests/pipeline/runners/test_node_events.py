"""Peak memory of nodes, and what TFX's cache key of a node contains."""

import subprocess
import sys
import threading

import psutil
from tfx.orchestration import metadata
from tfx.orchestration.portable import cache_utils
from tfx.proto.orchestration import executable_spec_pb2, pipeline_pb2

from regard.pipeline.runners.node_events import PeakMemory, observe_nodes

MIB = 1 << 20


def executor(path: str, *arguments: str) -> executable_spec_pb2.BeamExecutableSpec:
    spec = executable_spec_pb2.BeamExecutableSpec()
    spec.python_executor_spec.class_path = path
    for argument in arguments:
        spec.beam_pipeline_args_placeholders.add().value.string_value = argument
    return spec


def test_cache_key_contains_the_executor_but_not_its_beam_options(tmp_path):
    specs = [
        executor("a.B", "--runner=FnApiRunner"),
        executor("a.B", "--runner=FlinkRunner", "--parallelism=2"),
        executor("a.C", "--runner=FnApiRunner"),
    ]
    config = metadata.sqlite_metadata_connection_config(str(tmp_path / "metadata.sqlite"))
    node, info = pipeline_pb2.PipelineNode(), pipeline_pb2.PipelineInfo(id="tiny")
    with observe_nodes(), metadata.Metadata(config) as store:
        keys = [
            cache_utils.get_cache_context(store, node, info, executor_spec=spec).name
            for spec in specs
        ]
    assert keys[0] == keys[1] != keys[2]


def test_temporary_allocation_counts():
    with PeakMemory() as first:  # includes processes of earlier tests
        pass
    with PeakMemory(0.01) as memory:
        allocation = bytearray(b"x" * 200 * MIB)
        threading.Event().wait(0.1)
        del allocation
    assert first.bytes + 150 * MIB < memory.bytes < first.bytes + 450 * MIB


def test_child_processes_count():
    code = "data = bytearray(b'x' * (150 << 20)); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        own_bytes = psutil.Process().memory_info().rss
        with PeakMemory() as memory:
            pass
        child.communicate(b"\n")
    assert memory.bytes > own_bytes + 140 * MIB


def test_thread_ends_with_the_block():
    threads = threading.active_count()
    with PeakMemory():
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
