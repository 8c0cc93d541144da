"""Serving from the command line: which models, how, and until when."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import UserError
from components.registry import MODEL_FILE, Registry
from pipeline.commands import terminal
from pipeline.predicting import quiet
from serving.importing import uncollected
from serving.local.model_config import (
    Batching,
    ModelConfig,
    Policy,
    check_name,
    read_batching,
    read_models,
)
from serving.local.status import ServingError

if TYPE_CHECKING:
    from serving.local.manager import Manager
    from serving.local.server import Server

# For models of text: a batch of short texts takes little longer than one of them.
DEFAULT_BATCHING = Batching(max_batch_size=64, batch_timeout_micros=2000, max_enqueued_batches=100)
GRACE_SECONDS = 30.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """How models are served.

    Attributes:
        batching: how requests are put together; None: each is answered alone.
        per_model: whether a file beside each version says that instead.
        host: the address to listen at.
        grpc_port: None for no gRPC.
        rest_port: None for no REST.
        poll_seconds: between two looks for new versions; 0: never.
        config_poll_seconds: between two looks at which models there are; 0: never.
        threads: requests side by side, without batching.
        timeout: seconds that a REST request may take.
        most_bytes: of a request.
        certificate: files with the certificates and the private key; None: no TLS.
        page: whether there is a page beside the API.
    """

    batching: Batching | None
    per_model: bool
    host: str
    grpc_port: int | None
    rest_port: int | None
    poll_seconds: float
    config_poll_seconds: float
    threads: int
    timeout: float
    most_bytes: int
    certificate: tuple[Path, Path] | None
    page: bool


def configs(models: Sequence[str], file: Path | None, registry: Path) -> list[ModelConfig]:
    """What is to be served.

    Args:
        models: names of the registry, with or without a version, or folders.
        file: a ``ModelServerConfig``; None for none.
        registry: the registry's folder.

    Raises:
        UserError: a model is not there, there is none, or two have one name.
    """
    found = [_config(text, registry) for text in models]
    if file is not None:
        try:
            found += read_models(file)
        except ServingError as error:
            raise UserError(error.message, remedy="Mend the file of --model-config-file.") from None
    if not found:
        raise UserError(
            "there is no model to serve",
            remedy="Name one: `regard serve NAME`, or --model-config-file.",
        )
    names = [config.name for config in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"two models are called {twice!r}", remedy="Serve one of them elsewhere.")
    return found


def _config(text: str, registry: Path) -> ModelConfig:
    known = Registry(registry)
    path = known.resolve(text)
    given, (name, at, _) = Path(text).expanduser(), text.partition("@")
    is_name = os.sep not in text and bool(known.versions(name))
    if not path.name.isdecimal():
        raise UserError(
            "a served model lies in a folder whose name is its version, a whole number",
            where=str(path),
            remedy=f"Copy it to a folder of its own, for example as models/{path.name}/1.",
        )
    name = path.parent.resolve().name
    try:
        check_name(name)
    except ServingError as error:
        raise UserError(error.message, where=str(path.parent)) from None
    one = bool(at) if is_name else (given / MODEL_FILE).is_file()
    policy = Policy(None, specific=(int(path.name),)) if one else Policy()
    return ModelConfig(name, path.parent.absolute(), policy)


def batching(wanted: bool, file: Path | None) -> Batching | None:
    """How requests are put together.

    Raises:
        UserError: the file cannot be read, or there is one without batching.
    """
    if file is None:
        return DEFAULT_BATCHING if wanted else None
    if not wanted:
        raise UserError(
            "--batching-parameters-file says how to batch, and --no-batching not to",
            remedy="Leave one of them out.",
        )
    try:
        return read_batching(file)
    except ServingError as error:
        raise UserError(
            error.message, remedy="Mend the file of --batching-parameters-file."
        ) from None


def serve(models: Callable[[], list[ModelConfig]], settings: Settings) -> None:
    """Serves until the process is told to end, then answers what it has taken.

    Args:
        models: what is to be served, as it is now.
        settings: how.

    Raises:
        UserError: no model can be loaded, or a port cannot be had.
    """
    started, first = time.monotonic(), models()
    with quiet():  # TensorFlow has much to say of itself
        with uncollected():
            import tensorflow
            import tensorflow_text  # noqa: F401

            import serving.local.server  # noqa: F401

        tensorflow.constant(0)  # it looks for devices

    tensorflow.get_logger().setLevel("ERROR")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%H:%M:%S"))
    logging.getLogger("regard.serve").addHandler(handler)
    logging.getLogger("regard.serve").setLevel(logging.INFO)
    asyncio.run(_serve(first, models, settings, started))


async def _serve(
    first: list[ModelConfig],
    models: Callable[[], list[ModelConfig]],
    settings: Settings,
    started: float,
) -> None:
    from serving.local.manager import Manager, Options
    from serving.local.server import Listening, Server
    from serving.web import routes

    options = Options(
        poll_seconds=settings.poll_seconds,
        batching=settings.batching,
        per_model=settings.per_model,
        threads=settings.threads,
    )
    manager = Manager(first, options)
    listening = Listening(
        settings.host,
        settings.grpc_port,
        settings.rest_port,
        settings.timeout,
        settings.most_bytes,
        settings.certificate,
    )
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    server = Server(manager, listening, routes(manager) if settings.page else ())
    try:
        await server.start()
    except OSError as error:
        await manager.close()
        raise UserError(
            str(error), remedy="Choose another --port or --rest-api-port, or end what has it."
        ) from None
    if not (available := _available(manager)):
        await server.stop(0)
        raise UserError("no model could be loaded", remedy="The lines above say why.")
    _tell(available, server, settings, time.monotonic() - started)
    following = loop.create_task(_follow(manager, first, models, settings.config_poll_seconds))
    await ended.wait()
    following.cancel()
    terminal.err().print("Stopping: what was asked is still answered …")
    # Whoever does not want to wait asks twice.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
    await server.stop(GRACE_SECONDS)


async def _follow(
    manager: Manager,
    served: list[ModelConfig],
    models: Callable[[], list[ModelConfig]],
    seconds: float,
) -> None:
    """Serves other models as soon as others are to be served; what is wrong changes nothing."""
    log, told = logging.getLogger("regard.serve"), ""
    while seconds:
        await asyncio.sleep(seconds)
        try:
            wanted = await asyncio.to_thread(models)
            if wanted != served:
                await manager.reload(wanted)
                served = wanted
            told = ""
        except Exception as error:
            # Said once, and not as often as the file is read.
            if str(error) != told:
                known = isinstance(error, UserError | ServingError)
                log.error("not all models are as wanted: %s", error, exc_info=not known)
            told = str(error)


def _available(manager: Manager) -> list[str]:
    """Models with the versions that answer: ``quickstart@3``."""
    found = []
    for name in manager.names:
        with contextlib.suppress(ServingError):
            found.append(f"{name}@{manager.find(name).number}")
    return found


def _tell(models: Sequence[str], server: Server, settings: Settings, seconds: float) -> None:
    console = terminal.out()
    console.print(f"Serving {', '.join(models)} after {seconds:.1f} s. Ctrl-C ends it.")
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if server.rest_port is not None:
        scheme = "https" if settings.certificate else "http"
        name = models[0].partition("@")[0]
        if settings.page:
            console.print(f"  Page  {scheme}://{host}:{server.rest_port}/")
        console.print(f"  REST  {scheme}://{host}:{server.rest_port}/v1/models/{name}:predict")
    if server.grpc_port is not None:
        console.print(f"  gRPC  {host}:{server.grpc_port}")
