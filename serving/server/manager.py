"""The models of a server: discover versions, load and unload them, and run requests."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from grpc import StatusCode

from regard.serving.server.batching import Tensors
from regard.serving.server.errors import ServingError, invalid
from regard.serving.server.loading import check_unchanged, load_servable, snapshot_or_none
from regard.serving.server.metrics import Metrics, microseconds_since
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import LOAD_THREADS, ManagerOptions
from regard.serving.server.request_log import RequestLog
from regard.serving.server.runner import Runner
from regard.serving.server.servable import DEFAULT_SIGNATURE, LoadServable, Servable
from regard.serving.server.versions import (
    AVAILABLE,
    END,
    LOADING,
    START,
    UNLOADING,
    ModelSpec,
    PredictResult,
    Version,
    list_versions,
)

T = TypeVar("T")
log = logging.getLogger("regard.serve")


@dataclass
class _Model:
    config: ModelConfig
    versions: dict[int, Version] = field(default_factory=dict)

    def available(self) -> list[int]:
        return sorted(n for n, version in self.versions.items() if version.state == AVAILABLE)


class ModelManager:
    """Serves models from their folders and follows changes there.

    A new version is loaded and warmed up before the version that it replaces is unloaded; the old
    version finishes its requests first. Only loading and inference leave the event loop. Versions
    are loaded one at a time, so that one with a slow first row delays those of all other models.

    Args:
        models: the models to serve.
        options: how they are loaded and run.
        metrics: the counters.
        load: creates a servable from a folder.
    """

    def __init__(
        self,
        models: Iterable[ModelConfig],
        options: ManagerOptions,
        metrics: Metrics | None = None,
        load: LoadServable = Servable,
    ):
        self.options, self.metrics, self._load = options, metrics or Metrics(), load
        self._log: RequestLog | None = None
        self._models: dict[str, _Model] = {}
        self._set_models(models)
        self._load_pool = ThreadPoolExecutor(1, LOAD_THREADS)
        self._runner = Runner(options, self.metrics)
        self._tasks: set[asyncio.Task[None]] = set()
        self._poll_task: asyncio.Task[None] | None = None
        self._change = asyncio.Lock()  # one scan or replacement of the models at a time

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return sorted(self._models)

    @property
    def is_ready(self) -> bool:
        """Whether a model is available, and a thread to run it."""
        is_available = any(model.available() for model in self._models.values())
        return is_available and not self._runner.is_overdue

    async def start(self) -> None:
        """Load the existing versions, then keep scanning for new ones.

        Raises:
            OSError: the request log cannot be opened.
        """
        if self.options.request_log:
            self._log = RequestLog(self.options.request_log, self.metrics)
        await self.poll()
        if self.options.poll_seconds > 0:
            self._poll_task = asyncio.get_running_loop().create_task(self._keep_polling())

    async def reload(self, models: Iterable[ModelConfig]) -> None:
        """Replace the set of served models.

        Raises:
            ServingError: a label names a version that is not available; the labels of that model
                do not change.
        """
        models = list(models)
        async with self._change:
            old_labels = {name: model.config.labels for name, model in self._models.items()}
            # Load the versions first: a label may name a version that is only now configured.
            self._set_models(
                replace(config, labels=old_labels.get(config.name, config.labels))
                for config in models
            )
            await self._scan()
            for config in models:
                model = self._models[config.name]
                old = old_labels.get(config.name, config.labels)
                for label, number in config.labels.items():
                    if number not in model.available() and old.get(label) != number:
                        problem = f"Label {label!r} of model {config.name!r} names version {number}"
                        message = f"{problem}, which is not available."
                        raise ServingError(StatusCode.FAILED_PRECONDITION, message)
                model.config = config

    async def poll(self) -> None:
        """Scan all model folders once, and load and unload versions accordingly."""
        async with self._change:
            await self._scan()

    async def _scan(self) -> None:
        await asyncio.gather(*(self._update(model) for model in list(self._models.values())))

    def find(self, spec: ModelSpec) -> Version:
        """Return the available version that a request names.

        Raises:
            ServingError: there is no such model, version or label.
        """
        if not spec.model:
            raise invalid("The request names no model.")
        model, number = self._models.get(spec.model), spec.version
        if spec.label:
            if model is None or spec.label not in model.config.labels:
                raise invalid(f"Model {spec.model!r} has no version label {spec.label!r}.")
            number = model.config.labels[spec.label]
        available = model.available() if model else []
        if number is None and available:
            number = available[-1]
        if model is None or number is None or number not in available:
            raise _unavailable(spec.model, number, model)
        return model.versions[number]

    def list_states(self, spec: ModelSpec) -> list[Version]:
        """Return the known versions of a model, the newest first, or the one that is named.

        Raises:
            ServingError: there is no such model or version.
        """
        model, number = self._models.get(spec.model), spec.version
        if model is None or not model.versions:
            raise ServingError(StatusCode.NOT_FOUND, f"Model {spec.model!r} has no versions.")
        if number is None:
            return [model.versions[each] for each in sorted(model.versions, reverse=True)]
        if number not in model.versions:
            message = f"Model {spec.model!r} has no version {number}."
            raise ServingError(StatusCode.NOT_FOUND, message)
        return [model.versions[number]]

    async def predict(
        self, spec: ModelSpec, signature: str, inputs: Tensors, outputs: Sequence[str] = ()
    ) -> PredictResult:
        """Run one request on one version.

        Args:
            spec: the version.
            signature: the signature's name; "" for the default one.
            inputs: arrays by name.
            outputs: the outputs to return; none: all.

        Raises:
            ServingError: the version or signature does not exist, the inputs do not fit, or the
                model fails.
        """
        signature, started = signature or DEFAULT_SIGNATURE, time.monotonic()
        version = self.find(spec)
        most = self.options.batching.max_request_rows
        # The largest: a graph can repeat the only row of one input for all rows of another.
        rows = max([1, *(len(tensor) for tensor in inputs.values() if tensor.ndim)])
        if rows > most:
            raise invalid(f"The request has {rows} rows; the maximum is {most}.")
        with version.hold() as servable:
            servable.validate_inputs(signature, inputs)
            names = servable.select_outputs(signature, outputs)
            results = await self._runner.batcher(version, signature, rows).submit(inputs)
        self.metrics.observe("request_example_counts", rows, model=spec.model)
        self.metrics.count("request_example_count_total", rows, model=spec.model)
        if self._log:
            name = {"model": spec.model, "version": version.number, "signature": signature}
            self._log.add(started, {**name, "status": "OK"}, inputs, results)
        return PredictResult(version.number, signature, {name: results[name] for name in names})

    @contextlib.contextmanager
    def track_request(self, model: str, api: str, entry_point: str) -> Iterator[None]:
        """Count a request by its result, and record the latency of a successful one.

        Args:
            model: the model's name.
            api: ``predict`` over REST, ``Predict`` over gRPC.
            entry_point: ``REST`` or ``GRPC``.
        """
        started, status = time.monotonic(), "CANCELLED"
        try:
            yield
            status = "OK"
        except Exception as error:
            status = error.code.name if isinstance(error, ServingError) else "INTERNAL"
            raise
        finally:
            # Unknown names are not stored: a client could invent any number of them.
            known = model if model in self._models else ""
            self.metrics.count("request_count", model_name=known, status=status)
            if status == "OK":
                labels = {"model_name": known, "API": api, "entrypoint": entry_point}
                self.metrics.observe("request_latency", microseconds_since(started), **labels)
            elif self._log:
                self._log.add(started, {"model": known, "status": status}, {}, {})

    async def close(self) -> None:
        """Unload all models after their last requests.

        A version that is being loaded is not waited for: its first row may take minutes. The
        thread ends when that is over.
        """
        if self._poll_task is not None:
            self._poll_task.cancel()
        self._set_models([])
        await asyncio.gather(*self._tasks)
        self._load_pool.shutdown(wait=False, cancel_futures=True)
        self._runner.close()
        if self._log:
            self._log.close()

    def _set_models(self, models: Iterable[ModelConfig]) -> None:
        configs = {config.name: config for config in models}
        for name in set(self._models) - set(configs):
            for version in self._models.pop(name).versions.values():
                self._unload(version)
        for name, config in configs.items():
            self._models.setdefault(name, _Model(config)).config = config

    async def _keep_polling(self) -> None:
        while True:
            await asyncio.sleep(self.options.poll_seconds)
            try:
                await self.poll()
            except Exception:
                log.exception("Scanning the model folders failed.")

    async def _update(self, model: _Model) -> None:
        if refresh := model.config.refresh:
            try:
                await asyncio.get_running_loop().run_in_executor(self._load_pool, refresh)
            except Exception as error:  # the versions that are here are still served
                log.warning("Model %s: new versions cannot be read: %s", model.config.name, error)
        folders = await self._in_load_pool(list_versions, model.config.base_path)
        if not folders:
            log.warning("Model %s has no versions in its folder.", model.config.name)
        policy = model.config.policy
        selected = policy.select(list(folders))
        for number in selected:
            await self._try_version(model, number, folders[number])
        if policy.latest is not None:
            # None of the newest can be used: serve the newest one that can.
            for number in sorted(set(folders) - set(selected), reverse=True):
                if model.available():
                    break
                await self._try_version(model, number, folders[number])
        # The newest loaded version stays until a selected one is available.
        is_replaced = bool(set(model.available()) & set(selected)) or (folders and not selected)
        for number, version in list(model.versions.items()):
            if number not in selected and is_replaced:
                self._unload(version)
            if number not in folders and version.state in (START, END):
                del model.versions[number]

    async def _try_version(self, model: _Model, number: int, path: Path) -> None:
        """Load a version, unless it is loaded or was tried too recently."""
        version = model.versions.get(number)
        if version is None or (version.state == END and version.error is None):
            version = model.versions[number] = Version(number)
        if version.state not in (START, END):
            return
        snapshot = await self._in_load_pool(snapshot_or_none, path)
        if version.attempts.is_due(snapshot, self.options):
            await self._load_version(model, version, path)

    async def _load_version(self, model: _Model, version: Version, path: Path) -> None:
        version.state = LOADING
        name, number, options = model.config.name, version.number, self.options
        # The first version is available at once, a replacement when it is as fast.
        only = None if model.available() else DEFAULT_SIGNATURE

        def load() -> Servable:
            version.lock(path)
            return load_servable(self._load, name, path, only)

        try:
            if model.available() and options.settle_seconds:
                await asyncio.sleep(options.settle_seconds)
                await self._in_load_pool(check_unchanged, name, path, version.attempts.snapshot)
            version.servable = await self._in_load_pool(load)
        except Exception as exception:
            if isinstance(exception, ServingError):
                # Without its traceback, which would keep a model whose warm-up failed in memory.
                error = ServingError(exception.code, exception.message)
            else:
                log.exception("Loading version %s of model %s failed.", number, name)
                error = ServingError(StatusCode.INTERNAL, f"Could not load version {number}")
            version.unlock()
            version.error = error
            version.attempts.add_failure(options)
            version.state = END if version.attempts.is_over(options) else START
            rest = " It is tried again when its files change." if version.state == END else ""
            log.error("version %s of model %s: %s%s", number, name, error, rest)
            return
        version.state, version.error = AVAILABLE, None
        log.info("serving version %s of model %s", number, name)
        if only:
            self._start_task(self._finish_warm_up(version))

    async def _in_load_pool(self, function: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._load_pool, function, *args)

    async def _finish_warm_up(self, version: Version) -> None:
        with version.hold() as servable:
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(self._load_pool, servable.warm_up)
            except Exception as error:
                log.warning("version %s: a warm-up request failed: %s", version.number, error)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _unload(self, version: Version) -> None:
        """Send no new requests to a version, and unload it after its last one."""
        if version.state in (UNLOADING, END):
            return
        if version.state != AVAILABLE:
            version.state = END
            return
        version.state = UNLOADING
        self._start_task(version.unload())


def _unavailable(name: str, number: int | None, model: _Model | None) -> ServingError:
    """Return the error of a request for a version that is not available.

    The server is at fault if the version exists and cannot be loaded, or not yet.
    """
    requested = "version" if number is None else f"version {number}"
    message = f"No {requested} of model {name!r} is available."
    known = model.versions if model else {}
    for version in known.values():
        is_requested = number in (None, version.number)
        if is_requested and (version.state in (START, LOADING) or version.error is not None):
            message += " It could not be loaded, or not yet."
            return ServingError(StatusCode.UNAVAILABLE, message)
    return ServingError(StatusCode.NOT_FOUND, message)
