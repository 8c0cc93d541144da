"""A pipeline of two nodes that pushes a model, for the tests of what ML Metadata keeps."""

# No lazy annotations here: TFX reads them when it makes a component from a function.
import json
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples, PushedModel

from regard.components.common.component import Findings
from regard.pipeline import worker
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


def push(paths: PipelinePaths, run: str, identifier: str, corpus: dict | None = None) -> None:
    """Runs the pipeline; what is known by its parameters comes from the cache."""

    def make() -> Pipeline:
        paths.root.mkdir(parents=True, exist_ok=True)
        generated = CorpusGen(corpus=json.dumps(corpus or {}))
        return Pipeline(
            pipeline_name=paths.root.name,
            pipeline_root=str(paths.artifacts),
            components=[
                generated,
                Pusher(identifier=identifier, examples=generated.outputs["examples"]),
            ],
            enable_cache=True,
            metadata_connection_config=metadata.sqlite_metadata_connection_config(
                str(paths.metadata)
            ),
        )

    assert worker.run(make, run_id=run) == worker.OK
