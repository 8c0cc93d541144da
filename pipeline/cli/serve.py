"""``regard serve``: serve models locally with TensorFlow Serving's protocols."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Annotated, Literal

from regard.core.errors import UserError
from regard.core.processor import count_cores
from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_version
from regard.pipeline.cli.options import (
    Engine,
    JsonErrorsOption,
    QuantizationOption,
    RegistryOption,
    argument,
    converted_type,
    flag,
    option,
)
from regard.pipeline.deployment import serve as deployment
from regard.pipeline.deployment.serve import RunningServer
from regard.pipeline.workspace import Workspace
from regard.serving.server import options

_LENGTHS = "16,32,64"  # three programs, which include most sentences
_MAX_LENGTHS = 8  # each program has a copy of the weights


def serve(
    models: Annotated[
        list[str] | None,
        argument(
            "MODEL",
            "NAME or NAME@VERSION in the registry, or a folder of versions. Without a "
            "version, the newest one is served, and replaced when a newer one is published.",
            autocompletion=complete_version,
        ),
    ] = None,
    model_config: Annotated[
        Path | None,
        option(
            "--model-config-file",
            "FILE",
            "Models, version policies and labels in TensorFlow Serving's format.",
        ),
    ] = None,
    engine: Annotated[
        Literal[Engine, "jax"],
        option(
            "--engine",
            "ENGINE",
            "tensorflow, ctranslate2 for Transformers that write texts, or jax for requests of one "
            "text to any model that writes texts.",
        ),
    ] = "tensorflow",
    quantization: QuantizationOption = None,
    compiled_lengths: Annotated[
        str | None,
        option(
            "--compiled-lengths",
            "TOKENS",
            "Numbers of source tokens that JAX compiles programs for, ascending. TensorFlow "
            "computes longer texts.",
            _LENGTHS,
        ),
    ] = None,
    max_batch_size: Annotated[
        int,
        option("--max-batch-size", "ROWS", "Maximum rows of a batch; 1 disables batching.", min=1),
    ] = 64,
    max_request_rows: Annotated[
        int,
        option(
            "--max-request-rows",
            "ROWS",
            "Maximum rows of a request, which bounds its processor time.",
            min=1,
        ),
    ] = 256,
    batch_timeout: Annotated[
        float,
        option(
            "--batch-timeout",
            "MILLISECONDS",
            "How long an incomplete batch waits for requests, unless the server is idle.",
            min=0,
        ),
    ] = 2.0,
    host: Annotated[
        str,
        option("--host", "ADDRESS", "Address to listen on; 0.0.0.0 for all network interfaces."),
    ] = "127.0.0.1",
    port: Annotated[
        int, option("--port", "PORT", "gRPC port; 0 to disable.", min=0, max=65535)
    ] = 8500,
    rest_port: Annotated[
        int, option("--rest-api-port", "PORT", "REST port; 0 to disable.", min=0, max=65535)
    ] = 8501,
    timeout: Annotated[
        float, option("--timeout", "SECONDS", "Time limit for a request.", min=0.001)
    ] = 30.0,
    max_megabytes: Annotated[
        int, option("--max-request", "MB", "Size limit for a request.", min=1)
    ] = 16,
    certificate: Annotated[
        Path | None,
        option("--tls-certificate", "FILE", "PEM file with the certificate chain.", "no TLS"),
    ] = None,
    key: Annotated[
        Path | None, option("--tls-key", "FILE", "PEM file with the private key.")
    ] = None,
    client_ca: Annotated[
        Path | None,
        option(
            "--tls-client-ca",
            "FILE",
            "PEM file with the authorities of the certificates that clients must present.",
            "clients need no certificate",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        option(
            "--token-file",
            "FILE",
            "File with tokens, one per line; clients must send one to run or replace models.",
            "no tokens",
        ),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        option(
            "--allowed-host",
            "NAME",
            "Name by which clients may address the REST port, or of a web site that may use it; "
            "repeatable.",
            "localhost if only this machine can connect, otherwise any",
        ),
    ] = None,
    reload_roots: Annotated[
        list[Path] | None,
        option(
            "--allow-reload",
            "FOLDER",
            "Let clients replace the models over gRPC with others in this folder; repeatable.",
            "not allowed",
        ),
    ] = None,
    log_requests: Annotated[
        Path | None, option("--log-requests", "FILE", "Log of requests in JSON lines.", "no log")
    ] = None,
    log_sample: Annotated[
        float, option("--log-sample", "SHARE", "Share of rows to log, at random.", min=0, max=1)
    ] = 1.0,
    log_texts: Annotated[
        bool, flag("--log-texts", "Log inputs and outputs, not only their lengths and scores.")
    ] = False,
    registry: RegistryOption = None,
    opens_page: Annotated[bool, flag("--open", "Open the page in a browser.")] = False,
    errors_as_json: JsonErrorsOption = False,
) -> None:
    """Serve models with TensorFlow Serving's gRPC and REST APIs.

    New versions replace old ones without downtime. The REST port also has a web
    page for using the models; --open opens it in a browser.

    [bold]Examples[/bold]

      regard serve quickstart --open

      regard serve quickstart translation@3 --rest-api-port 9000

      regard serve multi30k-transformer --engine ctranslate2 --quantization int8

      regard serve multi30k --engine jax --compiled-lengths 16,48

      regard serve --model-config-file models.config --max-batch-size 32

      curl localhost:8501/v1/models/mine:predict -d '{"instances": ["A dog."]}'
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    needs_tls = certificate or key or client_ca
    if needs_tls and not (certificate and key):
        option = "--tls-key" if certificate else "--tls-certificate"
        raise UserError("TLS needs a certificate and a key.", option, "Give both.")
    converted = converted_type(engine, quantization)
    if compiled_lengths is not None and engine != "jax":
        remedy = "Use it with --engine jax."
        raise UserError("Only JAX compiles programs.", "--compiled-lengths", remedy)
    lengths = []
    if engine == "jax":
        lengths = _parse_lengths(_LENGTHS if compiled_lengths is None else compiled_lengths)
    if opens_page and not rest_port:
        remedy = "Give --rest-api-port, or leave out --open."
        raise UserError("The page needs the REST port.", "--open", remedy)
    if not port and not rest_port:
        raise UserError("Both ports are disabled.", "--port", "Give it, or --rest-api-port.")
    log = (log_sample, log_texts)
    registry = registry or Workspace.from_environment().registry
    deployment.serve(
        deployment.list_models(models or [], model_config, registry),
        options.ManagerOptions(
            batching=options.BatchingOptions(
                max_batch_size, batch_timeout / 1000, max_request_rows=max_request_rows
            ),
            threads=count_cores(),
            run_seconds=timeout,
            reload_roots=tuple(reload_roots or ()),
            request_log=options.RequestLogOptions(log_requests, *log) if log_requests else None,
        ),
        options.ServerOptions(
            host,
            port or None,
            rest_port or None,
            timeout,
            max_megabytes << 20,
            (certificate, key) if certificate and key else None,
            client_ca,
            token_file,
            tuple(name.lower() for name in allowed_hosts or ()),
        ),
        quantization=converted,
        compiled_lengths=lengths,
        on_start=_open_page if opens_page else _print_addresses,
        on_stop=lambda: terminal.err().print("Stopping. Finishing the requests in progress …"),
    )


def _parse_lengths(text: str) -> list[int]:
    """Return the numbers of an option.

    Raises:
        UserError: they are not positive and ascending, or there are too many programs.
    """
    parts = [part.strip() for part in text.split(",")]
    lengths = [int(part) if re.fullmatch("[0-9]{1,6}", part) else 0 for part in parts]
    if len(lengths) > _MAX_LENGTHS or lengths != sorted({n for n in lengths if n > 0}):
        message = (
            f"{text[:80]!r} is not a list of up to {_MAX_LENGTHS} ascending positive integers."
        )
        raise UserError(message, "--compiled-lengths", f"Give numbers such as {_LENGTHS}.")
    return lengths


def _print_addresses(server: RunningServer) -> None:
    names = ", ".join(server.models)
    lines = [f"Serving {names} after {server.start_seconds:.1f} s. Press Ctrl-C to stop."]
    if server.rest_url is not None:
        name = server.models[0].partition("@")[0]
        lines.append(f"  Page  {server.rest_url}/")
        lines.append(f"  REST  {server.rest_url}/v1/models/{name}:predict")
    if server.grpc_address is not None:
        lines.append(f"  gRPC  {server.grpc_address}")
    terminal.print_lines(*lines)


def _open_page(server: RunningServer) -> None:
    """Print the addresses, and open the page without delaying the server."""
    _print_addresses(server)
    address = f"{server.rest_url}/"
    threading.Thread(target=terminal.open_page, args=(address,), daemon=True).start()
