"""Run batches in threads, and know which of them have exceeded their time limit."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from regard.serving.server.batching import Batcher, Tensors
from regard.serving.server.metrics import Metrics, microseconds_since
from regard.serving.server.options import ManagerOptions
from regard.serving.server.servable import Servable
from regard.serving.server.slots import LargeSlots, SmallSlots
from regard.serving.server.versions import Version

# A request with at most this share of a full batch is small: it has its own queue and threads.
_SMALL_SHARE = 8
# How much longer than its limit a computation takes that TensorFlow cancels.
_OVERDUE_SECONDS = 1.0


class Runner:
    """Runs the batches of all models.

    Args:
        options: threads, limits, and how requests are batched.
        metrics: the counters.
    """

    def __init__(self, options: ManagerOptions, metrics: Metrics):
        self._options, self._metrics = options, metrics
        # Small batches run in further threads while all others run large ones.
        self._pool = ThreadPoolExecutor(2 * options.threads, "run")
        self._large = LargeSlots(options.threads)
        self._small = SmallSlots(options.threads, self._large)
        self._started: dict[object, float] = {}  # of the batches that run

    @property
    def is_overdue(self) -> bool:
        """Whether as many batches as there are threads have exceeded their time limit.

        TensorFlow cancels a computation between two operations only, and CTranslate2 does not.
        """
        latest = time.monotonic() - self._options.run_seconds - _OVERDUE_SECONDS
        # A copy, because threads change it meanwhile.
        overdue = sum(started < latest for started in list(self._started.values()))
        return overdue >= self._options.threads

    def batcher(self, version: Version, signature: str, rows: int) -> Batcher:
        """Return the batcher for requests of this size, which is created for the first one.

        Args:
            version: a loaded version.
            signature: the signature.
            rows: the rows of the request.
        """
        servable, options = version.loaded, self._options.batching
        is_small = rows <= max(options.max_batch_size // _SMALL_SHARE, 1)
        key = (signature, is_small)
        if key not in version.batchers:
            is_batchable = servable.is_batchable(signature)
            version.batchers[key] = Batcher(
                options if is_batchable else replace(options, max_batch_size=1),
                lambda merged: self._compute(servable, signature, merged),
                self._small if is_small else self._large,
                self._observe_batch,
            )
        return version.batchers[key]

    def close(self) -> None:
        """End the threads."""
        self._large.close()
        self._pool.shutdown(wait=True)

    async def _compute(self, servable: Servable, signature: str, inputs: Tensors) -> Tensors:
        started, key = time.monotonic(), object()
        loop, limit = asyncio.get_running_loop(), self._options.run_seconds

        def run() -> Tensors:
            self._started[key] = time.monotonic()
            try:
                return servable.run(signature, inputs, limit)
            finally:
                del self._started[key]

        outputs = await loop.run_in_executor(self._pool, run)
        # TensorFlow Serving labels SavedModels with this runtime.
        labels = {"model_name": servable.name, "API": "Predict", "runtime": "TF1"}
        self._metrics.observe("runtime_latency", microseconds_since(started), **labels)
        return outputs

    def _observe_batch(self, rows: int, opened_at: float) -> None:
        latency, labels = "batching_session:queuing_latency", {"thread_pool_name": "batch_threads"}
        self._metrics.observe(latency, microseconds_since(opened_at), **labels)
        self._metrics.observe("batching_session:processed_batch_size", rows)
        self._metrics.count("batching_session:wrapped_run_count")
