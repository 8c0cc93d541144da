"""A pipeline of three nodes made from functions, for the tests of the runners.

``Fail`` depends on ``Add``, ``Aside`` on nothing. The file that ``REGARD_TINY`` names decides
what ``Fail`` does, so that one compiled pipeline can fail and then succeed.
"""

# No lazy annotations here: TFX reads them when it makes a component from a function.
import os
import shutil
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration import pipeline as tfx_pipeline

from regard.components.common.artifact_types import Findings
from regard.core.errors import UserError


@component
def Add(start: Parameter[int], total: OutputArtifact[Findings]) -> None:
    Path(total.uri, "total.txt").write_text(str(start + 1))
    total.set_string_custom_property("text", f"total {start + 1}")
    total.set_float_custom_property("third", (start + 1) / 3)


@component
def Fail(total: InputArtifact[Findings], copy: OutputArtifact[Findings]) -> None:
    what = Path(os.environ["REGARD_TINY"]).read_text()
    if what == "user":
        try:
            raise UserError("the sides differ", where="train.de:17", remedy="Correct line 17.")
        except UserError as error:
            raise RuntimeError("wrapped by a library") from error
    if what == "bug":
        raise ValueError("a list of 3\nmore text")
    if what == "exit":
        raise SystemExit(0)
    if what == "killed":
        Path(copy.uri, "half.txt").write_text("half")
        root = Path(copy.uri).parents[3]
        shutil.copytree(root, killed(root))
    if what == "beam":
        _fail_in_beam()
    Path(copy.uri, "copy.txt").write_text(Path(total.uri, "total.txt").read_text())


@component
def Aside(start: Parameter[int], other: OutputArtifact[Findings]) -> None:
    Path(other.uri, "other.txt").write_text(str(start))


def _fail_in_beam() -> None:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    def refuse(_: object) -> None:
        raise UserError("row 3 is empty", where="a.tsv:3", remedy="Fill it.")

    options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline:
        _ = pipeline | beam.Create([1]) | beam.Map(refuse)


def killed(root: Path) -> Path:
    """The copy that ``Fail`` makes of the root while it runs: what is left if it is killed then."""
    return root.with_name(f"{root.name}-killed")


def make(root: Path, start: int = 1) -> tfx_pipeline.Pipeline:
    """Builds the pipeline; its store and its artifacts lie below ``root``."""
    add = Add(start=start)
    fail = Fail(total=add.outputs["total"])
    aside = Aside(start=start)
    return tfx_pipeline.Pipeline(
        pipeline_name="tiny",
        pipeline_root=str(root / "artifacts"),
        components=[add, fail, aside],
        enable_cache=True,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(
            str(root / "metadata.sqlite")
        ),
    )
