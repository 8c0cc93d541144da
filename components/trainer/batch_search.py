"""``training.batch_tokens: auto``: the largest batch that fits the GPU, or a fast one on the CPU.

Each candidate trains for a few real steps, after which the state of the training is restored. The
learning rate does not depend on the result.
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from regard.components.common import events
from regard.components.common.errors import UserError
from regard.components.common.files import read_json_object, write_json
from regard.components.settings.trainer import NODE
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.input_pipeline import Batches
from regard.models.trainable_model import TrainableModel

RECORD = "batch_tokens.json"
_KEY = "training.batch_tokens"
_SMALLEST = 1024
# A larger batch would leave an epoch with fewer updates than this.
_MIN_BATCHES = 50
_MAX_TOKENS = {"GPU": 1 << 23, "CPU": 1 << 14}
# Of a measurement on the CPU: the tokens and steps of one pass, and the seconds of all passes.
_PASS_TOKENS, _PASS_STEPS = 16_384, 4
_SECONDS, _MAX_PASSES = 2.0, 50
# A batch is fast enough if its rate is this share of the best.
_ENOUGH = 0.95


def find_batch_tokens(model: TrainableModel, batches: Batches, checkpoints: Checkpoints) -> int:
    """Return the batch size of a training: the one that it has recorded, or the one to use.

    A search records its result next to the checkpoints, so that a training that resumes has the
    same batches. It leaves the weights, the optimizer and the random state as they are.

    Args:
        model: compiled.
        batches: the train split; its own ``batch_tokens`` does not matter. Of a group of devices
            that share a batch, the first one is measured.
        checkpoints: of this training.

    Raises:
        UserError: the record of a training with checkpoints is damaged, or not even the smallest
            batch fits.
    """
    path = checkpoints.folder / RECORD
    record = read_json_object(path)
    if "batch_tokens" not in record:
        if checkpoints.exists():
            message = f"The batch size of this training cannot be read from {path}."
            remedy = f"Remove the folder {checkpoints.folder}; the training then starts again."
            raise UserError(message, _KEY, remedy)
        kind = _device_kind()
        single = dataclasses.replace(batches, group=None) if batches.group else batches
        sizes = _candidates(single, _MAX_TOKENS[kind])
        with _unchanged(model):
            tokens, reason = (_largest if kind == "GPU" else _fastest)(model, sizes)
        devices = batches.group.size if batches.group else 1
        record = {"batch_tokens": tokens * devices, "reason": reason}
        write_json(path, record)
    text = f"{_KEY}: auto is {record['batch_tokens']:,} ({record['reason']})"
    events.emit("note", node=NODE, text=text)
    return int(record["batch_tokens"])


def _device_kind() -> str:
    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"


def _candidates(batches: Batches, limit: int) -> list[Batches]:
    """The train split with doubling batch sizes, of which the first has no minimum of batches."""
    size = _SMALLEST
    while size < 2 * batches.max_length:
        size *= 2
    sizes = [batches.with_batch_tokens(size)]
    while (size := 2 * size) <= limit:
        larger = batches.with_batch_tokens(size)
        if larger.size < _MIN_BATCHES:
            break
        sizes.append(larger)
    return sizes


@contextlib.contextmanager
def _unchanged(model: TrainableModel) -> Iterator[None]:
    """Restore the weights, the optimizer, the random generators and the metrics at the end."""
    variables = [*model.variables, *model.optimizer.variables]
    values = [np.asarray(variable).copy() for variable in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def _largest(model: TrainableModel, sizes: Sequence[Batches]) -> tuple[int, str]:
    """Return the largest batch of which 1.25 times the tokens also fit, or three quarters of it."""
    tokens, reason = 0, f"with more, an epoch has fewer than {_MIN_BATCHES} batches"
    for batches in sizes:
        if not _fits(model, batches):
            reason = f"the memory of the GPU does not hold {batches.batch_tokens:,}"
            break
        tokens = batches.batch_tokens
    if not tokens:
        message = f"The memory of the GPU does not hold {sizes[0].batch_tokens:,} tokens."
        remedy = "Use a smaller model, a smaller training.max_length, or a number."
        raise UserError(message, _KEY, remedy)
    if not _fits(model, sizes[0].with_batch_tokens(tokens * 5 // 4)):
        tokens = max(tokens * 3 // 4, 2 * sizes[0].max_length)
    return tokens, reason


def _fits(model: TrainableModel, batches: Batches) -> bool:
    """Whether the memory holds the batches with the most tokens and with the most pairs of them."""
    buckets = batches.buckets
    rows = buckets.count_rows(batches.lengths)
    counts = -(-rows // buckets.sizes)
    first, rows = np.cumsum(counts) - counts, np.minimum(rows, buckets.sizes)
    numbers = [int(first[np.argmax(rows * buckets.bounds**power)]) for power in (1, 2)]
    events.emit("progress", node=NODE, text=f"trying batches of {batches.batch_tokens:,} tokens")
    try:
        model.fit(batches.epoch(batches=numbers), shuffle=False, verbose=0)
    except tf.errors.ResourceExhaustedError:
        return False
    return True


def _fastest(model: TrainableModel, sizes: Sequence[Batches]) -> tuple[int, str]:
    """Return the smallest batch that is about as fast as the fastest one, and the rates of all."""
    rates: dict[int, float] = {}
    for batches in sizes:
        rates[batches.batch_tokens] = _rate(model, batches)
        *earlier, before, last = 0.0, 0.0, *rates.values()
        if _ENOUGH * max(before, last) < max(earlier):  # two sizes that gain nothing
            break
    tokens = next(size for size, rate in rates.items() if rate >= _ENOUGH * max(rates.values()))
    texts = ", ".join(f"{rate:,.0f} with {size:,}" for size, rate in rates.items())
    return tokens, f"{model.unit}/s: {texts}"


def _rate(model: TrainableModel, batches: Batches) -> float:
    """Return the units per second of batches of all lengths."""
    steps = max(_PASS_STEPS, _PASS_TOKENS // batches.batch_tokens)
    numbers = (np.arange(0.5, steps) * batches.size / steps).astype(int)
    events.emit("progress", node=NODE, text=f"timing batches of {batches.batch_tokens:,} tokens")
    clock = _Clock()
    model.fit(
        batches.epoch(batches=numbers.tolist()),
        epochs=_MAX_PASSES,
        shuffle=False,
        verbose=0,
        callbacks=[clock],
    )
    return clock.units / clock.seconds


class _Clock(keras.callbacks.Callback):
    """Measures steps after the first pass, which compiles, and after the first step of a pass."""

    def __init__(self) -> None:
        super().__init__()
        self.units = self.seconds = 0.0
        self._start = (0.0, 0.0)

    def _now(self) -> tuple[float, float]:
        return float(self.model.plain_loss.count), time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 0:
            self._start = self._now()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch:
            units, seconds = self._now()
            self.units += units - self._start[0]
            self.seconds += seconds - self._start[1]
            self.model.stop_training = self.seconds >= _SECONDS
