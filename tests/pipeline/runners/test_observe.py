"""What TFX's cache knows a node by while it is observed."""

from tfx.orchestration import metadata
from tfx.orchestration.portable import cache_utils
from tfx.proto.orchestration import executable_spec_pb2, pipeline_pb2

from pipeline.runners.observe import observing


def executor(path: str, *arguments: str) -> executable_spec_pb2.BeamExecutableSpec:
    spec = executable_spec_pb2.BeamExecutableSpec()
    spec.python_executor_spec.class_path = path
    for argument in arguments:
        spec.beam_pipeline_args_placeholders.add().value.string_value = argument
    return spec


def test_where_beam_runs_is_no_part_of_a_key_but_what_runs_is(tmp_path):
    specs = [
        executor("a.B", "--runner=FnApiRunner"),
        executor("a.B", "--runner=FlinkRunner", "--parallelism=2"),
        executor("a.C", "--runner=FnApiRunner"),
    ]
    config = metadata.sqlite_metadata_connection_config(str(tmp_path / "metadata.sqlite"))
    node, about = pipeline_pb2.PipelineNode(), pipeline_pb2.PipelineInfo(id="tiny")
    with observing(), metadata.Metadata(config) as store:
        keys = [
            cache_utils.get_cache_context(store, node, about, executor_spec=spec).name
            for spec in specs
        ]
    assert keys[0] == keys[1] != keys[2]
