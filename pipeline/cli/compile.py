"""``regard compile``: compile a configuration for a cluster."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from regard.components.common.errors import UserError
from regard.pipeline.cli import terminal


class Target(str, Enum):
    """The system that runs the compiled pipeline."""

    kubeflow = "kubeflow"


def compile_config(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="YAML file of a pipeline with a section kubeflow.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Target, typer.Option("--to", help="Open-source Kubeflow Pipelines 2.3 or newer.")
    ] = Target.kubeflow,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Output file. Overwrites only a compiled pipeline.",
            show_default="NAME.kubeflow.yaml",
        ),
    ] = None,
) -> None:
    """Compile a pipeline for Kubeflow Pipelines.

    Needs neither the data nor a cluster. ${REGARD_HOME} becomes kubeflow.home,
    and the nodes find the data and the model in production when they run. See
    docs/kubeflow.md.

    [bold]Example[/bold]

      regard compile configs/quickstart.yaml --to kubeflow -o quickstart.kubeflow.yaml

    [bold]Exit status[/bold]: 0 compiled; 2 an error that you can fix.
    """
    from regard.components.common.files import atomic_write
    from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
    from regard.pipeline.runners.kubeflow.settings import (
        cluster_warnings,
        load_for_cluster,
        require_kubeflow_extra,
    )
    from regard.pipeline.runners.kubeflow.validation import validate_pipeline

    assert target is Target.kubeflow
    require_kubeflow_extra()
    loaded = load_for_cluster(config)
    path = out or Path(f"{loaded.name}.kubeflow.yaml")
    _check_output(path, config)
    with terminal.working("compiling with TFX …"):
        pipeline = compile_pipeline(loaded)
        validate_pipeline(pipeline, str(path))
    atomic_write(path, pipeline.to_yaml())
    terminal.print_notes(cluster_warnings(loaded))
    names = ", ".join(sorted(pipeline.parameters))
    nodes = len(pipeline.spec["root"]["dag"]["tasks"])
    console = terminal.out()
    console.print(
        f"{path}: pipeline {loaded.name}, {nodes} nodes, parameters {names}", soft_wrap=True
    )
    console.print(f"  To start a run: regard submit {path} --host URL", soft_wrap=True)


def _check_output(path: Path, config: Path) -> None:
    """Refuse to overwrite anything but a compiled pipeline.

    Raises:
        UserError: the output file is the configuration, or another file.
    """
    from regard.pipeline.runners.kubeflow.pipeline_file import read_pipeline

    remedy = "Choose another file with --out."
    if path.resolve() == config.resolve():
        raise UserError("The output file is the configuration itself.", f"--out {path}", remedy)
    if path.is_file() and path.stat().st_size and read_pipeline(path) is None:
        message = "The file exists and is not a compiled pipeline."
        raise UserError(message, f"--out {path}", remedy)
