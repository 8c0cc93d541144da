"""``regard deploy``: what a pushed model needs to run behind TensorFlow Serving elsewhere."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from components.errors import UserError
from pipeline.commands import terminal

_LEAST, _MOST, _NAMESPACE = 2, 6, "default"

app = typer.Typer(
    help="Put a pushed model behind TensorFlow Serving.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class Target(str, Enum):
    """Where the model is to run."""

    compose = "compose"
    kubernetes = "kubernetes"
    kserve = "kserve"


@app.command("render")
def render(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="NAME or NAME@VERSION in the registry. Without a version: always the newest.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Target, typer.Option("--to", help="Docker Compose, plain Kubernetes, or KServe.")
    ] = Target.kubernetes,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where the files go.", show_default="./deploy/NAME"
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="The registry as the server sees it: a folder (compose), pvc://CLAIM/FOLDER, or "
            "what KServe reads, such as gs://bucket/registry.",
            show_default="the registry, or pvc://regard-registry",
        ),
    ] = None,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="TensorFlow Serving's, with its version.")
    ] = "tensorflow/serving:2.19.1",
    replicas: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Servers at the least; not of compose.",
            min=1,
            show_default=str(_LEAST),
        ),
    ] = None,
    most_replicas: Annotated[
        int | None,
        typer.Option(
            "--max-replicas",
            metavar="N",
            help="Servers at the most; not of compose.",
            min=1,
            show_default=str(_MOST),
        ),
    ] = None,
    cpu: Annotated[str, typer.Option(metavar="N", help="Processors of a server.")] = "2",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory of a server.")] = "2Gi",
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of Kubernetes.", show_default=_NAMESPACE),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that were changed by hand.")
    ] = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Write the files that serve a model: nothing is sent anywhere.

    [bold]Examples[/bold]

      regard deploy render quickstart --to compose

      regard deploy render translation --storage pvc://models/registry --namespace nlp

      regard deploy render translation --to kserve --storage gs://bucket/registry
    """
    if target is Target.compose:
        given = {"--replicas": replicas, "--max-replicas": most_replicas, "--namespace": namespace}
        for option, value in given.items():
            if value is not None:
                raise UserError(
                    "does not go with --to compose: it has one server, and no namespaces",
                    option,
                    "Leave it out, or give --to kubernetes or --to kserve.",
                )
    from pipeline import deploying
    from pipeline.workspace import Workspace

    root = registry or Workspace.from_environment().registry
    rendered = deploying.render(
        model,
        root,
        target.value,
        storage=storage,
        image=image,
        replicas=_LEAST if replicas is None else replicas,
        most_replicas=_MOST if most_replicas is None else most_replicas,
        cpu=cpu,
        memory=memory,
        namespace=_NAMESPACE if namespace is None else namespace,
    )
    folder = out or Path("deploy") / model.partition("@")[0]
    deploying.write(rendered.files, folder, force=force)
    console = terminal.out()
    for name in rendered.files:
        console.print(str(folder / name), soft_wrap=True)
    for line in rendered.notes:
        console.print(line, soft_wrap=True)
    console.print(f"next  {rendered.next.format(folder=folder)}", soft_wrap=True)
