"""``regard serve``: models over TensorFlow Serving's protocols, on this machine."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from components.errors import UserError
from pipeline.commands import terminal

_OFF = "0: none."


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="NAME or NAME@VERSION in the registry, or a folder of versions. Without a "
            "version: the newest one, and each newer one as soon as it is there.",
            show_default=False,
        ),
    ] = None,
    model_config: Annotated[
        Path | None,
        typer.Option(
            "--model-config-file",
            metavar="FILE",
            help="The models, as TensorFlow Serving's --model_config_file has them.",
            show_default=False,
        ),
    ] = None,
    batching: Annotated[
        bool, typer.Option("--batching/--no-batching", help="Answer requests together.")
    ] = True,
    batching_parameters: Annotated[
        Path | None,
        typer.Option(
            "--batching-parameters-file",
            metavar="FILE",
            help="How, as TensorFlow Serving's --batching_parameters_file has it.",
            show_default="64 rows, 2 ms",
        ),
    ] = None,
    per_model: Annotated[
        bool,
        typer.Option(
            "--per-model-batching/--common-batching",
            help="Each version's own batching_params.pbtxt says how; those without one answer "
            "each request alone. Of --batching-parameters-file only num_batch_threads counts "
            "then: the threads that all versions share.",
        ),
    ] = False,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0: to other machines too."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", help=f"Of gRPC. {_OFF}", min=0, max=65535)
    ] = 8500,
    rest_port: Annotated[
        int,
        typer.Option("--rest-api-port", metavar="PORT", help=f"Of REST. {_OFF}", min=0, max=65535),
    ] = 8501,
    poll: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="How often to look for new versions. 0: never.", min=0
        ),
    ] = 1.0,
    config_poll: Annotated[
        float,
        typer.Option(
            "--model-config-file-poll",
            metavar="SECONDS",
            help="How often to read that file again. 0: never.",
            min=0,
        ),
    ] = 0.0,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Requests that are worked on side by side; with batching its file says it.",
            min=1,
            show_default="one a core",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How long a REST request may take.", min=0.001),
    ] = 30.0,
    most_megabytes: Annotated[
        int, typer.Option("--max-request", metavar="MB", help="Of one request.", min=1)
    ] = 64,
    certificate: Annotated[
        Path | None,
        typer.Option("--tls-certificate", metavar="FILE", help="PEM.", show_default="no TLS"),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--tls-key", metavar="FILE", help="PEM.", show_default=False),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page/--no-page", help="A page to ask and to look, beside the API.")
    ] = True,
    registry: terminal.RegistryOption = None,
) -> None:
    """Serve models as TensorFlow Serving does: gRPC, REST, new versions without a pause.

    [bold]Examples[/bold]

      regard serve quickstart

      regard serve quickstart translation@3 --rest-api-port 9000

      regard serve --model-config-file models.config --batching-parameters-file b.config

      curl localhost:8501/v1/models/quickstart:predict -d '{"instances": ["20 Nov 2026"]}'
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from pipeline import served
    from pipeline.workspace import Workspace

    root = registry or Workspace.from_environment().registry
    if (certificate is None) != (key is None):
        raise UserError("TLS needs both files", remedy="Give --tls-certificate and --tls-key.")
    for file in (certificate, key):
        if file is not None and not file.is_file():
            raise UserError("there is no such file", where=str(file))
    if not port and not rest_port:
        raise UserError("there is nothing to listen to", remedy="Give --port or --rest-api-port.")
    if per_model and not batching:
        raise UserError(
            "--per-model-batching says how to batch, and --no-batching not to",
            remedy="Leave one of them out.",
        )
    served.serve(
        partial(served.configs, models or [], model_config, root),
        served.Settings(
            batching=served.batching(batching, batching_parameters),
            per_model=per_model,
            host=host,
            grpc_port=port or None,
            rest_port=rest_port or None,
            poll_seconds=poll,
            config_poll_seconds=config_poll,
            threads=threads or os.cpu_count() or 1,
            timeout=timeout,
            most_bytes=most_megabytes << 20,
            certificate=(certificate, key) if certificate and key else None,
            page=page,
        ),
    )
