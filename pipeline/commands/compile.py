"""``regard compile``: a configuration as a file that another system runs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from components.errors import UserError
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
        Target, typer.Option("--to", help="Open-source Kubeflow Pipelines, 2.3 or newer.")
    ] = Target.kubeflow,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where it is written; only a compiled pipeline is written over.",
            show_default="NAME.kubeflow.yaml",
        ),
    ] = None,
) -> None:
    """Write the file that runs a pipeline on a cluster.

    Neither data nor cluster are needed: paths are taken as the containers will
    have them, with ${REGARD_HOME} as kubeflow.home, and the nodes look for the
    data, and for the model in production, when they run. docs/kubeflow.md says
    more.

    [bold]Example[/bold]

      regard compile configs/quickstart.yaml --to kubeflow -o quickstart.kubeflow.yaml

    [bold]Exit status[/bold]: 0 it is written; 2 something is wrong.
    """
    from components.files import atomic_write
    from pipeline.kubeflow.compiling import as_text, compiled
    from pipeline.kubeflow.extra import require
    from pipeline.kubeflow.lint import lint, refuse
    from pipeline.kubeflow.settings import load_for_cluster, notes

    assert target is Target.kubeflow
    require()
    checked = load_for_cluster(config)
    path = out or Path(f"{checked.name}.kubeflow.yaml")
    _check_free(path, config)
    with terminal.working("compiling with TFX …"):
        documents = compiled(checked)
    text = as_text(documents)
    refuse(lint(text), str(path))
    atomic_write(path, text)
    terminal.print_notes(notes(checked))
    told = terminal.out()
    spec = documents[0]
    names = ", ".join(sorted(spec["root"]["inputDefinitions"]["parameters"]))
    nodes = len(spec["root"]["dag"]["tasks"])
    told.print(
        f"{path}: pipeline {checked.name}, {nodes} nodes, parameters {names}", soft_wrap=True
    )
    told.print(f"  regard submit {path} --host URL   starts a run", soft_wrap=True)


def _check_free(path: Path, config: Path) -> None:
    """Keeps what nobody could make again: the configuration, and files of others.

    Raises:
        UserError: the file that is to be written is one of them.
    """
    from pipeline.kubeflow.package import is_pipeline, read

    remedy = "Give another file with --out."
    if path.resolve() == config.resolve():
        raise UserError("this is the configuration itself", f"--out {path}", remedy)
    if path.is_file() and path.stat().st_size:
        try:
            ours = is_pipeline(read(path))
        except UserError:  # no text
            ours = False
        if not ours:
            message = "there is a file already that is no compiled pipeline"
            raise UserError(message, f"--out {path}", remedy)
