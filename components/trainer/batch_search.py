"""``training.batch_tokens: auto``: the largest batch that fits the GPU, or a fast one on the CPU.

Each candidate trains for a few real steps, after which the state of the training is restored. The
learning rate does not depend on the result.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence

import numpy as np

from regard.components.settings.trainer import NODE
from regard.components.trainer.backends import current_backend
from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import Checkpoints
from regard.core import events
from regard.core.errors import UserError
from regard.core.files import read_json_object, write_json
from regard.models.trainable_model import TrainableModel

RECORD = "batch_tokens.json"
_KEY = "training.batch_tokens"
# The smallest size, and the number of sizes, each twice the one before.
_SMALLEST, _GPU_SIZES, _CPU_SIZES = 1024, 14, 5
# A larger batch would leave an epoch with fewer updates than this.
_MIN_BATCHES = 50
# One measurement on the CPU; sizes with equal tokens have equal overheads.
_PASS_TOKENS, _PASS_STEPS, _PASSES = 32_768, 4, 2
# A batch is fast enough if its rate is this share of the best.
_ENOUGH = 0.95


def find_batch_tokens(model: TrainableModel, batches: Batches, checkpoints: Checkpoints) -> int:
    """Return the batch size of a training: the one that it has recorded, or the one to use.

    A search records its result next to the checkpoints, so that a training that resumes has the
    same batches. It leaves the weights, the optimizer and the random state as they are.

    Args:
        model: the compiled model.
        batches: the train split; its own ``batch_tokens`` does not matter. Of several devices
            that share a batch, the first one is measured.
        checkpoints: the files of this training.

    Raises:
        UserError: the record of a training with checkpoints is damaged, or not even the smallest
            batch fits.
    """
    path = checkpoints.folder / RECORD
    record = read_json_object(path)
    if "batch_tokens" not in record:
        if checkpoints.exists():
            message = "The batch size of this training cannot be read."
            remedy = f"Remove the folder {checkpoints.folder}; the training then starts again."
            raise UserError(message, str(path), remedy)
        single = dataclasses.replace(batches, sharing=None, tag_temperature=1.0)
        has_gpu = current_backend().has_gpu
        sizes = _candidates(single, _GPU_SIZES if has_gpu else _CPU_SIZES)
        restore = _keep_state(model)
        tokens, reason = _largest(model, sizes, restore) if has_gpu else _fastest(model, sizes)
        restore()
        tokens *= batches.sharing.parts if batches.sharing else 1
        record = {"batch_tokens": tokens, "reason": reason}
        write_json(path, record)
    text = f"{_KEY}: auto is {record['batch_tokens']:,} ({record['reason']})"
    events.emit("note", node=NODE, text=text)
    return int(record["batch_tokens"])


def _candidates(batches: Batches, count: int) -> list[Batches]:
    """The train split with doubling batch sizes, of which the first has no minimum of batches."""
    size = _SMALLEST
    while size < 2 * batches.max_length:
        size *= 2
    first, *others = (batches.with_batch_tokens(size << power) for power in range(count))
    return [first, *(candidate for candidate in others if candidate.size >= _MIN_BATCHES)]


def _keep_state(model: TrainableModel) -> Callable[[], None]:
    """Return a function that restores the present weights, optimizer and random state."""
    variables = [*model.variables, *model.optimizer.variables]
    values = [np.asarray(variable).copy() for variable in variables]

    def restore() -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    return restore


def _largest(
    model: TrainableModel, sizes: Sequence[Batches], restore: Callable[[], None]
) -> tuple[int, str]:
    """Return the largest batch of which 1.25 times the tokens also fit, or three quarters of it."""
    fitting = list(itertools.takewhile(lambda batches: _fits(model, batches, restore), sizes))
    if not fitting:
        message = f"The memory of the GPU does not hold {sizes[0].batch_tokens:,} tokens."
        remedy = "Use a smaller model, a smaller training.max_length, or a number."
        raise UserError(message, _KEY, remedy)
    tokens = fitting[-1].batch_tokens
    reason = f"with more, an epoch has fewer than {_MIN_BATCHES} batches"
    if len(fitting) < len(sizes):
        reason = f"the memory of the GPU does not hold {2 * tokens:,}"
    if not _fits(model, fitting[0].with_batch_tokens(tokens * 5 // 4), restore):
        tokens = max(tokens * 3 // 4, 2 * fitting[0].max_length)
    return tokens, reason


def _fits(model: TrainableModel, batches: Batches, restore: Callable[[], None]) -> bool:
    """Whether the memory holds the first batch of every length, of which no other is larger."""
    events.emit("progress", node=NODE, text=f"trying batches of {batches.batch_tokens:,} tokens")
    counts = -(-batches.buckets.count_rows(batches.lengths) // batches.buckets.sizes)
    numbers = (np.cumsum(counts) - counts)[counts > 0]
    try:
        _fit(model, batches, numbers)
    except Exception as error:
        if not current_backend().is_out_of_memory(error):
            raise
        restore()  # on JAX, a failed step loses the variables
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
    events.emit("progress", node=NODE, text=f"timing batches of {batches.batch_tokens:,} tokens")
    steps = max(_PASS_STEPS, _PASS_TOKENS // batches.batch_tokens)
    numbers = (np.arange(0.5, steps) * batches.size / steps).astype(int)
    rates = []
    for _ in range(1 + _PASSES):  # the first one compiles
        start = time.perf_counter()
        _fit(model, batches, numbers)
        rates.append(float(model.loss_mean.count) / (time.perf_counter() - start))
    return max(rates[1:])


def _fit(model: TrainableModel, batches: Batches, numbers: np.ndarray) -> None:
    """Train on some batches of the train split."""
    backend = current_backend()
    data = backend.data(batches).epoch(numbers=numbers)
    model.fit(data, shuffle=False, verbose=0, callbacks=backend.callbacks([], model))
