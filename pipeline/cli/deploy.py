"""``regard deploy``: render the files that run a model in TensorFlow Serving."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from regard.core.errors import UserError
from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_version
from regard.pipeline.cli.options import (
    EngineOption,
    JsonOption,
    QuantizationOption,
    RegistryOption,
    argument,
    command_group,
    converted_type,
    flag,
    option,
)
from regard.pipeline.deployment import render as deployment
from regard.pipeline.workspace import Workspace

app = command_group("Deploy a published model with TensorFlow Serving.")

_TF_SERVING = "tensorflow/serving:2.19.1"
# Parameters that Docker Compose does not support.
_CLUSTER_PARAMETERS = ("replicas", "max_replicas", "namespace")


@app.command("render")
def render(
    context: typer.Context,
    model: Annotated[
        str,
        argument(
            "MODEL",
            "NAME or NAME@VERSION in the registry. Without a version, always the newest one.",
            autocompletion=complete_version,
        ),
    ],
    target: Annotated[
        Literal["compose", "kubernetes", "kserve"],
        option("--to", "PLATFORM", "compose (Docker Compose), kubernetes or kserve."),
    ] = "kubernetes",
    out: Annotated[
        Path | None, option("--out -o", "DIR", "Folder for the files.", "./deploy/NAME")
    ] = None,
    storage: Annotated[
        str | None,
        option(
            "--storage",
            "URI",
            "The registry as the server sees it: a folder (Compose), pvc://CLAIM/FOLDER, or "
            "another URI that KServe supports, such as gs://bucket/registry.",
            "the registry, or pvc://regard-registry",
        ),
    ] = None,
    engine: EngineOption = "tensorflow",
    quantization: QuantizationOption = None,
    image: Annotated[
        str,
        option(
            "--image",
            "IMAGE",
            "Versioned image of TensorFlow Serving; with --engine ctranslate2, of Regard.",
        ),
    ] = _TF_SERVING,
    replicas: Annotated[
        int, option("--replicas", "N", "Minimum replicas (Kubernetes and KServe only).", min=1)
    ] = 2,
    max_replicas: Annotated[
        int, option("--max-replicas", "N", "Maximum replicas (Kubernetes and KServe only).", min=1)
    ] = 6,
    cpu: Annotated[str, option("--cpu", "N", "CPUs of a server.")] = "2",
    memory: Annotated[str, option("--memory", "SIZE", "Memory of a server.")] = "2Gi",
    namespace: Annotated[str, option("--namespace", "NAME", "Kubernetes namespace.")] = "default",
    force: Annotated[bool, flag("--force", "Replace files that have been modified.")] = False,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the files that run a model in TensorFlow Serving.

    The files are not applied. The command that applies them is printed.

    [bold]Examples[/bold]

      regard deploy render quickstart --to compose

      regard deploy render translation --storage pvc://models --namespace nlp

      regard deploy render mine --engine ctranslate2 --image example.com/regard:1

      regard deploy render translation --to kserve --storage gs://bucket/registry
    """
    for name in _CLUSTER_PARAMETERS if target == "compose" else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            message = "Not supported with --to compose, which runs one server without namespaces."
            remedy = "Leave it out, or use --to kubernetes or --to kserve."
            raise UserError(message, f"--{name.replace('_', '-')}", remedy)
    converted = converted_type(engine, quantization)
    if converted and (target == "kserve" or image == _TF_SERVING):
        remedy = (
            "Use --to compose or kubernetes, and --image with the image of Regard's Dockerfile."
        )
        raise UserError("TensorFlow Serving has no CTranslate2.", "--engine", remedy)
    files, requirements = deployment.render(
        model,
        registry or Workspace.from_environment().registry,
        target,
        storage=storage,
        image=image,
        replicas=replicas,
        max_replicas=max_replicas,
        cpu=cpu,
        memory=memory,
        namespace=namespace,
        quantization=converted,
    )
    folder = out or Path("deploy") / model.partition("@")[0]
    deployment.write(files, folder, force=force)
    paths = [str(folder / name) for name in files]
    command = deployment.NEXT[target].format(folder=folder)
    if as_json:
        terminal.print_json({"files": paths, "requirements": requirements, "next": command})
    else:
        terminal.print_lines(*paths, *requirements, f"next  {command}")
