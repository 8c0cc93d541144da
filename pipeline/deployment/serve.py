"""Serve models on this machine until the process receives a signal."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.registry.store import MODEL_FILE, Registry
from regard.core.errors import EnvironmentFault, UserError
from regard.core.garbage_collection import without_gc
from regard.core.native_output import silence_output
from regard.serving import session
from regard.serving.server.bearer_tokens import read_tokens
from regard.serving.server.errors import ServingError
from regard.serving.server.model_config import (
    ModelConfig,
    VersionPolicy,
    read_models,
    validate_name,
)
from regard.serving.server.options import LOAD_THREADS, ManagerOptions, ServerOptions
from regard.serving.server.tls_files import TlsFiles
from regard.serving.server.versions import ModelSpec

if TYPE_CHECKING:
    from regard.serving.server.manager import ModelManager
    from regard.serving.server.servable import LoadServable

GRACE_SECONDS = 30.0
_LAST_SECONDS = 1.0  # for a thread that has nothing to do any more
log = logging.getLogger("regard.serve")


@dataclasses.dataclass(frozen=True)
class RunningServer:
    """A server that accepts requests.

    Attributes:
        models: the available models, as ``NAME@VERSION``.
        grpc_address: ``host:port``; None without gRPC.
        rest_url: the scheme, host and port; None without REST.
        start_seconds: how long the start took.
    """

    models: list[str]
    grpc_address: str | None
    rest_url: str | None
    start_seconds: float


def list_models(models: Sequence[str], file: Path | None, registry: Path) -> list[ModelConfig]:
    """Return the models to serve.

    Args:
        models: names in the registry, with or without a version, or folders.
        file: TensorFlow Serving's ``models.config``, if any.
        registry: the registry's folder.

    Raises:
        UserError: a model does not exist, there is none, or two have the same name.
    """
    configs = [_find_model(text, registry) for text in models]
    if file is not None:
        try:
            configs += read_models(file)
        except ServingError as error:
            where = "--model-config-file"
            raise UserError(error.message, where, "Correct the file.") from None
    if not configs:
        remedy = "Name one, as in `regard serve NAME`, or use --model-config-file."
        raise UserError("There is no model to serve.", remedy=remedy)
    names = [config.name for config in configs]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        remedy = "Serve them in two processes, or rename a folder."
        raise UserError(f"Two models have the name {duplicate!r}.", remedy=remedy)
    return configs


def _find_model(text: str, registry: Path) -> ModelConfig:
    store = Registry(registry)
    path = store.resolve(text)
    name, has_version, _ = text.partition("@")
    is_in_registry = os.sep not in text and bool(store.versions(name))
    if not path.name.isdecimal():
        message = "The name of a served model's folder is not a version number."
        remedy = f"Copy it to a folder for its version, for example models/{path.name}/1."
        raise UserError(message, str(path), remedy)
    try:
        validate_name(path.parent.resolve().name)
    except ServingError as error:
        raise UserError(error.message, where=str(path.parent)) from None
    is_one_version = (Path(text).expanduser() / MODEL_FILE).is_file()
    if is_in_registry:
        is_one_version = bool(has_version)
    policy = VersionPolicy(None, specific=(int(path.name),)) if is_one_version else VersionPolicy()
    if store.mirror is not None and is_in_registry:
        link = functools.partial(store.mirror.link, name, policy.select)
        return ModelConfig(name, link(), policy, refresh=link)
    return ModelConfig(path.parent.resolve().name, path.parent.absolute(), policy)


def serve(
    models: Sequence[ModelConfig],
    manager_options: ManagerOptions,
    server_options: ServerOptions,
    quantization: str | None = None,
    compiled_lengths: Sequence[int] = (),
    on_start: Callable[[RunningServer], None] = lambda server: None,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Serve models until SIGINT or SIGTERM, then finish the requests in progress.

    Args:
        models: the models.
        manager_options: how they are loaded and run.
        server_options: addresses and limits.
        quantization: the type of the weights in CTranslate2; None: it does not compute.
        compiled_lengths: the numbers of source tokens that JAX compiles programs for; empty: it
            does not compute.
        on_start: called when the server accepts requests.
        on_stop: called when the server begins to stop.

    Raises:
        UserError: no model can be loaded, a port cannot be bound, the request log cannot be opened,
            or a TLS file or the file with the tokens cannot be used.
    """
    if tls_files := TlsFiles.from_options(server_options):
        tls_files.load()  # before the models, which take longer
    if server_options.token_file is not None:
        read_tokens(server_options.token_file)
    started = time.monotonic()
    with silence_output():
        with without_gc():
            from regard.pipeline.deployment import engines
            from regard.serving.server.manager import ModelManager
            from regard.serving.server.server import Server
            from regard.serving.web import create_routes

        session.initialize()

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    async def run() -> None:
        threads = manager_options.threads
        load: LoadServable = engines.load_verified
        if quantization:
            load = engines.ctranslate2_loader(quantization, threads)
        elif compiled_lengths:
            load = engines.jax_loader(compiled_lengths)
        manager = ModelManager(models, manager_options, load=load)
        routes = create_routes(manager, server_options.shows_examples)
        server = Server(manager, server_options, routes)
        stop_event, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop_event.set)
        try:
            await server.start()
        except OSError as error:
            await manager.close()
            remedy = "Choose another port (--port, --rest-api-port) or file (--log-requests)."
            raise EnvironmentFault(str(error), remedy=remedy) from None
        if not (available := _list_available(manager)):
            await server.stop(0)
            raise UserError("No model could be loaded.", remedy="See the messages above.")
        host = f"[{server_options.host}]" if ":" in server_options.host else server_options.host
        scheme = "https" if server_options.tls_files else "http"
        on_start(
            RunningServer(
                available,
                f"{host}:{server.grpc_port}" if server.grpc_port is not None else None,
                f"{scheme}://{host}:{server.rest_port}" if server.rest_port is not None else None,
                time.monotonic() - started,
            )
        )
        await stop_event.wait()
        on_stop()
        # A second signal ends the process at once.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        await server.stop(GRACE_SECONDS)

    asyncio.run(run())
    _end_despite_loading()


def _end_despite_loading() -> None:
    """End the process if a version is still being loaded; Python would wait for the thread."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(LOAD_THREADS)]
    for thread in threads:
        thread.join(_LAST_SECONDS)  # one that loads nothing ends at once
    if any(thread.is_alive() for thread in threads):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)


def _list_available(manager: ModelManager) -> list[str]:
    """Return the models with their newest available version, as ``NAME@VERSION``."""
    available = []
    for name in manager.names:
        with contextlib.suppress(ServingError):
            available.append(f"{name}@{manager.find(ModelSpec(name)).number}")
    return available
