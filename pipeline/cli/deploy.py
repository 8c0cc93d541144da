"""``regard deploy``: render the files that run a model in TensorFlow Serving."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from regard.components.common.errors import UserError
from regard.pipeline.cli import terminal

_MIN_REPLICAS, _MAX_REPLICAS, _NAMESPACE = 2, 6, "default"

app = typer.Typer(
    help="Deploy a published model with TensorFlow Serving.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class Target(str, Enum):
    """Where the model runs."""

    compose = "compose"
    kubernetes = "kubernetes"
    kserve = "kserve"


@app.command("render")
def render(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="NAME or NAME@VERSION in the registry. Without a version, always the newest one.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Target, typer.Option("--to", help="Platform: Docker Compose, plain Kubernetes, or KServe.")
    ] = Target.kubernetes,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder for the files.", show_default="./deploy/NAME"
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="The registry as the server sees it: a folder (Compose), pvc://CLAIM/FOLDER, or "
            "another URI that KServe supports, such as gs://bucket/registry.",
            show_default="the registry, or pvc://regard-registry",
        ),
    ] = None,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="Versioned image of TensorFlow Serving.")
    ] = "tensorflow/serving:2.19.1",
    replicas: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Minimum replicas (Kubernetes and KServe only).",
            min=1,
            show_default=str(_MIN_REPLICAS),
        ),
    ] = None,
    max_replicas: Annotated[
        int | None,
        typer.Option(
            "--max-replicas",
            metavar="N",
            help="Maximum replicas (Kubernetes and KServe only).",
            min=1,
            show_default=str(_MAX_REPLICAS),
        ),
    ] = None,
    cpu: Annotated[str, typer.Option(metavar="N", help="CPUs of a server.")] = "2",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory of a server.")] = "2Gi",
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Kubernetes namespace.", show_default=_NAMESPACE),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that have been modified.")
    ] = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Write the files that run a model in TensorFlow Serving.

    The files are not applied. The command that applies them is printed.

    [bold]Examples[/bold]

      regard deploy render quickstart --to compose

      regard deploy render translation --storage pvc://models/registry --namespace nlp

      regard deploy render translation --to kserve --storage gs://bucket/registry
    """
    if target is Target.compose:
        unsupported = {
            "--replicas": replicas,
            "--max-replicas": max_replicas,
            "--namespace": namespace,
        }
        for option, value in unsupported.items():
            if value is not None:
                raise UserError(
                    "Not supported with --to compose, which runs one server without namespaces.",
                    option,
                    "Leave it out, or use --to kubernetes or --to kserve.",
                )
    from regard.pipeline.deployment import render as deployment
    from regard.pipeline.workspace import Workspace

    root = registry or Workspace.from_environment().registry
    rendered = deployment.render(
        model,
        root,
        target.value,
        storage=storage,
        image=image,
        replicas=_MIN_REPLICAS if replicas is None else replicas,
        max_replicas=_MAX_REPLICAS if max_replicas is None else max_replicas,
        cpu=cpu,
        memory=memory,
        namespace=_NAMESPACE if namespace is None else namespace,
    )
    folder = out or Path("deploy") / model.partition("@")[0]
    deployment.write(rendered.files, folder, force=force)
    console = terminal.out()
    for name in rendered.files:
        console.print(str(folder / name), soft_wrap=True)
    for line in rendered.requirements:
        console.print(line, soft_wrap=True)
    console.print(f"next  {rendered.next.format(folder=folder)}", soft_wrap=True)
