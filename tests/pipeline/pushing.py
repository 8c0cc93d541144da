"""A pipeline of two nodes that pushes a model, for the tests of what ML Metadata keeps."""

# No lazy annotations here: TFX reads them when it makes a component from a function.
import json
from pathlib import Path

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples, PushedModel

from regard.components.common.artifact_types import Findings
from regard.core import owned_folders
from regard.pipeline.config.metadata import MetadataConfig
from regard.pipeline.metadata_store import connection_config, metadata_store
from regard.pipeline.runs import worker
from regard.pipeline.workspace import PipelinePaths


@component
def CorpusGen(
    corpus: Parameter[str], examples: OutputArtifact[Examples], findings: OutputArtifact[Findings]
) -> None:
    Path(findings.uri, "corpus.json").write_text(corpus)
    examples.span = 3


@component
def Pusher(
    identifier: Parameter[str],
    examples: InputArtifact[Examples],
    pushed_model: OutputArtifact[PushedModel],
) -> None:
    pushed_model.set_string_custom_property("mlmd_uuid", identifier)


def push(
    paths: PipelinePaths,
    run: str,
    identifier: str,
    corpus: dict | None = None,
    section: MetadataConfig = MetadataConfig(),  # noqa: B008
) -> None:
    """Runs the pipeline; what is known by its parameters comes from the cache."""
    metadata = metadata_store(section, paths)

    def make() -> Pipeline:
        paths.root.mkdir(parents=True, exist_ok=True)
        generated = CorpusGen(corpus=json.dumps(corpus or {}))
        return Pipeline(
            pipeline_name=paths.root.name,
            pipeline_root=str(metadata.artifacts),
            components=[
                generated,
                Pusher(identifier=identifier, examples=generated.outputs["examples"]),
            ],
            enable_cache=True,
            metadata_connection_config=connection_config(section, paths.metadata),
        )

    if metadata.is_shared:
        owned_folders.create(metadata.artifacts, owned_folders.ARTIFACTS)
    run_id = metadata.run_context(run)
    assert worker.run(make, run_id=run_id, own_outputs_only=metadata.is_shared) == worker.OK


def pushing_nodes(paths: PipelinePaths, identifier: str) -> tuple[str, list[tuple]] | None:
    """Return the run that pushed a model, and each node: its name, its run, its output folders."""
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(paths.metadata)
    config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READONLY
    store = MetadataStore(config)

    def producers(artifacts: set[int]) -> dict[int, int]:
        events = [e for e in store.get_events_by_artifact_ids(artifacts) if e.type == e.OUTPUT]
        executions = store.get_executions_by_id({event.execution_id for event in events})
        complete = {
            execution.id
            for execution in executions
            if execution.last_known_state == execution.COMPLETE
        }
        return {e.artifact_id: e.execution_id for e in events if e.execution_id in complete}

    def context(execution: int, kind: str) -> metadata_store_pb2.Context:
        return next(c for c in store.get_contexts_by_execution(execution) if c.type == kind)

    pushed = {
        artifact.id
        for artifact in store.get_artifacts_by_type("PushedModel")
        if artifact.custom_properties["mlmd_uuid"].string_value == identifier
    }
    if not pushed:
        return None
    first = min(pushed)  # later runs found the model pushed already
    run = context(producers({first})[first], "pipeline_run")
    ids = [execution.id for execution in store.get_executions_by_context(run.id)]
    events = store.get_events_by_execution_ids(ids)
    nodes = []
    for execution in set(producers({e.artifact_id for e in events if e.type == e.OUTPUT}).values()):
        own_events = store.get_events_by_execution_ids([execution])
        outputs = store.get_artifacts_by_id(
            [e.artifact_id for e in own_events if e.type == e.OUTPUT]
        )
        name = context(execution, "node").name.rpartition(".")[2]
        folders = [Path(artifact.uri) for artifact in outputs]
        nodes.append((name, context(execution, "pipeline_run").name, folders))
    return run.name, sorted(nodes, reverse=True)
