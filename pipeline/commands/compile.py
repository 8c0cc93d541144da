"""``regard compile``: a configuration as a file that another system runs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import terminal


class Target(str, Enum):
    """What the file is for."""

    kubeflow = "kubeflow"


def compile_config(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="The YAML file of a pipeline, with a section kubeflow.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Target, typer.Option("--to", help="Open-source Kubeflow Pipelines, 2.0 or newer.")
    ] = Target.kubeflow,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where it is written.")
    ] = Path("pipeline.yaml"),
) -> None:
    """Write the file that runs a pipeline on a cluster.

    Neither data nor cluster are needed: paths are taken as the containers will
    have them, with ${REGARD_HOME} as kubeflow.home, and the nodes look for the
    data, and for the model in production, when they run. docs/kubeflow.md says
    more.

    [bold]Example[/bold]

      regard compile configs/quickstart.yaml --to kubeflow -o pipeline.yaml

    [bold]Exit status[/bold]: 0 it is written; 2 something is wrong.
    """
    from pipeline.kubeflow.compiling import compiled, write
    from pipeline.kubeflow.lint import lint, refuse
    from pipeline.kubeflow.package import read
    from pipeline.kubeflow.settings import load_for_cluster, notes

    assert target is Target.kubeflow
    checked = load_for_cluster(config)
    with terminal.working("compiling with TFX …"):
        documents = compiled(checked)
    write(documents, out)
    refuse(lint(read(out)), str(out))
    terminal.print_notes(notes(checked))
    told = terminal.out()
    spec = documents[0]
    names = ", ".join(sorted(spec["root"]["inputDefinitions"]["parameters"]))
    nodes = len(spec["root"]["dag"]["tasks"])
    told.print(f"{out}: pipeline {checked.name}, {nodes} nodes, parameters {names}", soft_wrap=True)
    told.print(f"  regard submit {out} --host URL   starts a run", soft_wrap=True)
