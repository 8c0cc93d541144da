"""The models of a server: which versions there are, loading new ones, letting go of old ones."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from serving.local.batching import Batcher, Tensors
from serving.local.metrics import Metrics
from serving.local.model_config import Batching, ModelConfig, read_batching
from serving.local.servable import DEFAULT, Servable, public
from serving.local.status import Code, ServingError, invalid
from serving.local.versions import (
    AVAILABLE,
    END,
    LOADING,
    START,
    UNLOADING,
    Version,
    versions_in,
)
from serving.saved_model import IDENTIFIER

Load = Callable[[str, int, Path], Servable]
log = logging.getLogger("regard.serve")
PER_MODEL = "batching_params.pbtxt"


@dataclass
class _Model:
    config: ModelConfig
    versions: dict[int, Version] = field(default_factory=dict)

    def available(self) -> list[int]:
        return sorted(n for n, one in self.versions.items() if one.state == AVAILABLE)


@dataclass(frozen=True)
class Options:
    """How models are loaded and asked.

    Attributes:
        poll_seconds: how often the folders are looked at; 0: once.
        load_retries: how often a version that could not be loaded is tried again.
        retry_seconds: how long to wait before.
        batching: how requests are put together; None: each is answered alone.
        per_model: whether a version says that itself, in a file called ``PER_MODEL`` beside its
            model; without the file each of its requests is answered alone.
        threads: how many requests are worked on side by side, without batching.
        most_waiting: how many requests may be there at once, without batching.
        warm_up: whether the requests beside a model are answered before it is available.
    """

    poll_seconds: float = 1.0
    load_retries: int = 5
    retry_seconds: float = 60.0
    batching: Batching | None = None
    per_model: bool = False
    threads: int = 2
    most_waiting: int = 256
    warm_up: bool = True


class Manager:
    """Serves models from their folders, and follows what happens there.

    A new version is loaded and warmed up before the one that it replaces is let go, and that one
    answers all that it was asked before. Everything but loading and answering happens on the
    event loop.

    Args:
        models: what is served.
        options: how.
        metrics: what is counted.
        load: makes a servable of a folder.
    """

    def __init__(
        self,
        models: Iterable[ModelConfig],
        options: Options,
        metrics: Metrics | None = None,
        load: Load = Servable,
    ):
        self.options, self.metrics, self._load = options, metrics or Metrics(), load
        self._models: dict[str, _Model] = {}
        self._set(models)
        self._loading = ThreadPoolExecutor(1, "load")
        threads = options.batching.num_batch_threads if options.batching else options.threads
        self._running = ThreadPoolExecutor(threads, "run")
        self._tasks: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._waiting = 0

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return sorted(self._models)

    def serves(self, name: str) -> bool:
        """Whether there is a model of this name."""
        return name in self._models

    async def start(self) -> None:
        """Loads what there is, then looks again and again."""
        await self.poll()
        if self.options.poll_seconds > 0:
            self._poller = asyncio.get_running_loop().create_task(self._keep_polling())

    async def reload(self, models: Iterable[ModelConfig]) -> None:
        """Serves other models, or others too.

        Raises:
            ServingError: a label names a version that is not available; the labels of this model
                stay as they were.
        """
        models = list(models)
        before = {name: model.config.labels for name, model in self._models.items()}
        # The versions first, for a label may be of one that comes with it.
        self._set(replace(one, labels=before.get(one.name, one.labels)) for one in models)
        await self.poll()
        for config in models:
            model = self._models[config.name]
            there, known = model.available(), before.get(config.name)
            for label, number in config.labels.items():
                if known is not None and number not in there and known.get(label) != number:
                    told = f"Request to assign label to version {number} of model {config.name}"
                    told += ", which is not currently available for inference"
                    raise ServingError(Code.FAILED_PRECONDITION, told)
            model.config = config

    async def poll(self) -> None:
        """Looks at all folders once, and loads and lets go as it finds them."""
        await asyncio.gather(*(self._follow(model) for model in list(self._models.values())))

    @contextlib.contextmanager
    def use(self, name: str, version: int | None = None, label: str = "") -> Iterator[Version]:
        """A version that stays as long as it is used.

        Args:
            name: of the model.
            version: its number; None for the newest.
            label: what the version is called, instead of its number.

        Raises:
            ServingError: there is no such model, version or label.
        """
        found = self.find(name, version, label)
        found.users += 1
        try:
            yield found
        finally:
            found.users -= 1

    def find(self, name: str, version: int | None = None, label: str = "") -> Version:
        """The version that ``use`` would give; for what is known without asking the model.

        Raises:
            ServingError: there is no such model, version or label.
        """
        if not name:
            raise invalid("ModelSpec has no name specified.")
        model = self._models.get(name)
        if label:
            if model is None or label not in model.config.labels:
                raise invalid("Unrecognized servable version label: ", label)
            version = model.config.labels[label]
        there = model.available() if model else []
        chosen = version if version is not None else (there[-1] if there else None)
        if model is None or chosen not in there:
            kind = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise ServingError(Code.NOT_FOUND, f"Servable not found for request: {kind}")
        return model.versions[chosen]

    def states(self, name: str, version: int | None = None) -> list[Version]:
        """The versions of a model that have been wanted, the newest first, or one of them.

        Raises:
            ServingError: there is no such model or version.
        """
        model = self._models.get(name)
        if model is None or not model.versions:
            told = f"Could not find any versions of model {name}"
            raise ServingError(Code.NOT_FOUND, told)
        if version is None:
            return [model.versions[number] for number in sorted(model.versions, reverse=True)]
        if version not in model.versions:
            told = f"Could not find version {version} of model {name}"
            raise ServingError(Code.NOT_FOUND, told)
        return [model.versions[version]]

    async def ask(self, used: Version, signature: str, inputs: Tensors) -> dict[str, np.ndarray]:
        """All outputs of a signature, in a batch with others where that is configured.

        Raises:
            ServingError: the model fails, or too many requests wait.
        """
        servable = used.servable
        assert servable is not None
        if used.batching is None:
            if self._waiting >= self.options.most_waiting:
                told = f"{self._waiting} requests are waiting, and no more may"
                raise ServingError(Code.UNAVAILABLE, told)
            self._waiting += 1
            try:
                return await self._run(servable, signature, inputs)
            finally:
                self._waiting -= 1
        key = signature or DEFAULT
        if key not in used.batchers:

            async def run(merged: Tensors) -> dict[str, np.ndarray]:
                return await self._run(servable, key, merged)

            used.batchers[key] = Batcher(used.batching, run, self.metrics.batch)
        return await used.batchers[key].submit(inputs)

    async def close(self) -> None:
        """Lets go of all models, once nobody uses them."""
        if self._poller is not None:
            self._poller.cancel()
        self._set([])
        for task in list(self._tasks):
            await task
        self._loading.shutdown(wait=True)
        self._running.shutdown(wait=True)

    async def _run(
        self, servable: Servable, signature: str, inputs: Tensors
    ) -> dict[str, np.ndarray]:
        loop = asyncio.get_running_loop()
        started = time.monotonic()
        answer = await loop.run_in_executor(self._running, servable.run, signature, inputs)
        self.metrics.ran(servable.name, time.monotonic() - started)
        return answer

    def _set(self, models: Iterable[ModelConfig]) -> None:
        wanted = {config.name: config for config in models}
        for name in set(self._models) - set(wanted):
            model = self._models.pop(name)
            for version in model.versions.values():
                self._let_go(version)
        for name, config in wanted.items():
            if name in self._models:
                self._models[name].config = config
            else:
                self._models[name] = _Model(config)

    async def _keep_polling(self) -> None:
        while True:
            await asyncio.sleep(self.options.poll_seconds)
            try:
                await self.poll()
            except Exception:
                log.exception("the models' folders could not be looked at")

    async def _follow(self, model: _Model) -> None:
        there = versions_in(model.config.base_path)
        if not there:
            log.warning("no versions of model %s under its base path", model.config.name)
        wanted = model.config.policy.choose(list(there))
        for number in wanted:
            version = model.versions.get(number)
            if version is None or (version.state == END and version.error is None):
                version = model.versions[number] = Version(number)
            if version.state == START and time.monotonic() >= version.retry_at:
                await self._bring(model.config.name, version, there[number])
        # The newest that answers stays until a wanted one does.
        answering = set(model.available()) & set(wanted)
        for number, version in list(model.versions.items()):
            if number not in wanted and (answering or (not wanted and there)):
                self._let_go(version)
            if number not in there and version.state == END:
                del model.versions[number]

    async def _bring(self, name: str, version: Version, path: Path) -> None:
        """Loads a version, and warms it up."""
        version.state = LOADING
        try:
            version.batching = self._batching(path)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._loading, version.hold, path)
            version.servable = await loop.run_in_executor(
                self._loading, self._loaded, name, version.number, path
            )
        except Exception as error:
            if not isinstance(error, ServingError):
                log.exception("version %s of model %s", version.number, name)
                error = ServingError(Code.INTERNAL, f"Could not load version {version.number}")
            version.release()
            version.failures += 1
            version.error = error
            again = version.failures <= self.options.load_retries
            version.state = START if again else END
            version.retry_at = time.monotonic() + self.options.retry_seconds
            log.error("version %s of model %s: %s", version.number, name, error)
            return
        version.state, version.error = AVAILABLE, None
        if (path / IDENTIFIER).is_file():
            self.metrics.identified(name, version.number)
        log.info("serving version %s of model %s", version.number, name)

    def _batching(self, path: Path) -> Batching | None:
        """How requests to the version in this folder are put together."""
        if self.options.batching is None or not self.options.per_model:
            return self.options.batching
        file = path / PER_MODEL
        try:
            return read_batching(file) if file.is_file() else None
        except ServingError as error:
            raise ServingError(error.code, public(error.message, path)) from None

    def _loaded(self, name: str, number: int, path: Path) -> Servable:
        servable = self._load(name, number, path)
        if self.options.warm_up:
            started = time.monotonic()
            if count := servable.warm_up():
                self.metrics.warmed(name, count, time.monotonic() - started)
        return servable

    def _let_go(self, version: Version) -> None:
        """No new request gets this version; it goes when the last one is answered."""
        if version.state in (UNLOADING, END):
            return
        if version.state != AVAILABLE:
            version.state = END
            return
        version.state = UNLOADING
        task = asyncio.get_running_loop().create_task(self._unload(version))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _unload(self, version: Version) -> None:
        while version.users:
            await asyncio.sleep(0.01)
        for batcher in version.batchers.values():
            await batcher.close()
        version.batchers.clear()
        version.servable = None
        version.release()
        version.state = END
        log.info("version %s is no longer served", version.number)
