"""``regard serve``: serve models locally with TensorFlow Serving's protocols."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.components.common.errors import UserError
from regard.pipeline.cli import terminal

if TYPE_CHECKING:
    from regard.pipeline.deployment.serve import RunningServer


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="NAME or NAME@VERSION in the registry, or a folder of versions. Without a "
            "version, the newest one is served, and replaced when a newer one is published.",
            show_default=False,
        ),
    ] = None,
    model_config: Annotated[
        Path | None,
        typer.Option(
            "--model-config-file",
            metavar="FILE",
            help="Models, version policies and labels in TensorFlow Serving's format.",
            show_default=False,
        ),
    ] = None,
    max_batch_size: Annotated[
        int,
        typer.Option(metavar="ROWS", help="Maximum rows of a batch; 1 disables batching.", min=1),
    ] = 64,
    batch_timeout: Annotated[
        float,
        typer.Option(
            metavar="MILLISECONDS", help="How long an incomplete batch waits for requests.", min=0
        ),
    ] = 2.0,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all network interfaces."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", help="gRPC port; 0 to disable.", min=0, max=65535),
    ] = 8500,
    rest_port: Annotated[
        int,
        typer.Option(
            "--rest-api-port", metavar="PORT", help="REST port; 0 to disable.", min=0, max=65535
        ),
    ] = 8501,
    poll: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="Interval between scans for new versions; 0: scan once.", min=0
        ),
    ] = 1.0,
    config_poll: Annotated[
        float,
        typer.Option(
            "--model-config-file-poll",
            metavar="SECONDS",
            help="Interval between readings of --model-config-file; 0: read it once.",
            min=0,
        ),
    ] = 0.0,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Batches that run at once.",
            min=1,
            show_default="number of cores",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit for a REST request.", min=0.001)
    ] = 30.0,
    max_megabytes: Annotated[
        int, typer.Option("--max-request", metavar="MB", help="Size limit for a request.", min=1)
    ] = 64,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--tls-certificate",
            metavar="FILE",
            help="PEM file with the certificate chain.",
            show_default="no TLS",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--tls-key", metavar="FILE", help="PEM file with the private key.", show_default=False
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page/--no-page", help="Serve a web UI alongside the API.")
    ] = True,
    registry: terminal.RegistryOption = None,
) -> None:
    """Serve models with TensorFlow Serving's gRPC and REST APIs.

    New versions replace old ones without downtime.

    [bold]Examples[/bold]

      regard serve quickstart

      regard serve quickstart translation@3 --rest-api-port 9000

      regard serve --model-config-file models.config --max-batch-size 32

      curl localhost:8501/v1/models/quickstart:predict -d '{"instances": ["20 Nov 2026"]}'
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from regard.pipeline.deployment.serve import ServeOptions, list_models
    from regard.pipeline.deployment.serve import serve as run_server
    from regard.pipeline.workspace import Workspace
    from regard.serving.server.options import BatchingOptions, ManagerOptions, ServerOptions

    if (certificate is None) != (key is None):
        raise UserError(
            "TLS needs a certificate and a key.", remedy="Give --tls-certificate and --tls-key."
        )
    if not port and not rest_port:
        raise UserError("Both ports are disabled.", remedy="Give --port or --rest-api-port.")
    options = ServeOptions(
        ManagerOptions(
            poll_seconds=poll,
            batching=BatchingOptions(max_batch_size, batch_timeout / 1000),
            threads=threads or os.cpu_count() or 1,
        ),
        ServerOptions(
            host,
            port or None,
            rest_port or None,
            timeout,
            max_megabytes << 20,
            (certificate, key) if certificate and key else None,
        ),
        config_poll,
        page,
    )
    root = registry or Workspace.from_environment().registry
    run_server(
        partial(list_models, models or [], model_config, root),
        options,
        on_start=partial(_print_addresses, has_page=page),
        on_stop=lambda: terminal.err().print("Stopping. Finishing the requests in progress …"),
    )


def _print_addresses(server: RunningServer, has_page: bool) -> None:
    console = terminal.out()
    names = ", ".join(server.models)
    console.print(f"Serving {names} after {server.start_seconds:.1f} s. Press Ctrl-C to stop.")
    if server.rest_url is not None:
        if has_page:
            console.print(f"  Page  {server.rest_url}/")
        name = server.models[0].partition("@")[0]
        console.print(f"  REST  {server.rest_url}/v1/models/{name}:predict")
    if server.grpc_address is not None:
        console.print(f"  gRPC  {server.grpc_address}")
