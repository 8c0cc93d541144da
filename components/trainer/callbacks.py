"""Keras callbacks of a training: progress and limits, periodic checkpoints."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import keras

from regard.components.settings.trainer import NODE
from regard.components.trainer.backends import current_backend
from regard.components.trainer.checkpoint import Checkpoints, TrainState
from regard.components.trainer.device_group import DeviceGroup
from regard.components.trainer.summaries import SummaryWriter
from regard.core import events
from regard.core.formatting import format_duration
from regard.models.metrics import METRICS
from regard.models.settings.training import TrainingConfig

T = TypeVar("T")


class TrainingProgress(keras.callbacks.Callback):
    """Counts batches, checks the limits, and reports progress once a second.

    Args:
        state: the counters.
        training: the section ``training``.
        batches_per_epoch: the number of batches in an epoch.
        writer: the writer of TensorBoard summaries.
        group: the devices that train together; None for a single device.
    """

    def __init__(
        self,
        state: TrainState,
        training: TrainingConfig,
        batches_per_epoch: int,
        writer: SummaryWriter,
        group: DeviceGroup | None = None,
    ):
        super().__init__()
        self.state, self.training, self.writer = state, training, writer
        self.batches_per_epoch, self.group = batches_per_epoch, group
        # The time that max_minutes limits, and the batch at which workers next agree on it.
        self._seconds, self._next_sync = state.seconds, state.batches
        self._last_report = self._last_batch = time.monotonic()
        self._reported_tokens = self._counted_tokens = 0.0

    def restart(self) -> None:
        """Restart the clock and the running means, after a pause such as an evaluation."""
        self.model.reset_metrics()
        self._last_batch = self._last_report = time.monotonic()
        self._reported_tokens = self._counted_tokens = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.restart()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.monotonic()
        self.state.epoch_batches += 1
        self.state.batches += 1
        self.state.seconds += now - self._last_batch
        self._last_batch = now
        if self.training.max_minutes:
            self._update_clock()
        if self.state.batches % self.training.gradient_accumulation_steps == 0:
            self.state.step += 1
        if now - self._last_report >= 1.0:
            self._report(now)
        if self.limit():
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._report(time.monotonic())

    def limit(self) -> str:
        """The limit that is reached, as text; empty if none is."""
        limits, state = self.training, self.state
        if limits.max_steps and state.step >= limits.max_steps:
            return f"max_steps: {state.step}"
        if limits.max_minutes and self._seconds >= 60 * limits.max_minutes:
            return f"max_minutes: {limits.max_minutes}"
        if limits.max_epochs and state.epoch >= limits.max_epochs:
            return f"max_epochs: {state.epoch}"
        return ""

    def _update_clock(self) -> None:
        """Update the time that ``max_minutes`` limits.

        With several workers, the chief's clock ends the training of all. They synchronize before
        the same batch, about once a second, at the pace that the chief reports.
        """
        state = self.state
        if self.group is None:
            self._seconds = state.seconds
        elif state.batches >= self._next_sync:
            pace = state.batches / max(state.seconds, 1e-9)
            state.seconds, pace = self.broadcast(lambda: (state.seconds, pace))
            self._seconds, self._next_sync = state.seconds, state.batches + max(1, int(pace))

    def broadcast(self, compute: Callable[[], T]) -> T:
        """Return the result of ``compute``, JSON values that only the chief computes."""
        return compute() if self.group is None else self.group.broadcast_object(compute)

    def count_tokens(self) -> None:
        """Update ``state.tokens``."""
        # The weight of the running mean is the number of real units since the last restart.
        tokens = float(self.model.loss_mean.count)
        self.state.tokens += int(tokens - self._counted_tokens)
        self._counted_tokens = tokens

    def loss(self) -> float:
        """The mean loss per unit since the last restart.

        Raises:
            FloatingPointError: it is not finite, and this worker is the chief. The others continue,
                or the chief might lose the connection before it can report the reason.
        """
        loss = float(self.model.loss_mean.result())
        is_chief = self.group is None or self.group.is_chief
        if is_chief and not math.isfinite(loss):
            raise FloatingPointError(
                f"The loss is {loss} at step {self.state.step}. Try a lower learning rate, a "
                "longer warm-up, a smaller clip_norm, or float32."
            )
        return loss

    def _report(self, now: float) -> None:
        current_backend().synchronize(self.model)
        self.count_tokens()
        if not self._counted_tokens:
            return  # an evaluation has just restarted the means
        elapsed = max(now - self._last_report, 1e-9)
        rate = (self._counted_tokens - self._reported_tokens) / elapsed
        self._last_report, self._reported_tokens = now, self._counted_tokens
        loss = self.loss()
        fraction = self._fraction()
        left = self.state.seconds * (1 - fraction) / fraction if fraction > 0.005 else None
        text = (
            f"epoch {self.state.epoch + 1} · step {self.state.step} · "
            f"{rate:,.0f} {self.model.unit}/s · loss {loss:.3f}"
        )
        if self.state.history:
            text += f" · eval {format_evaluation(self.state.history[-1])}"
        if left is not None:
            text += f" · {format_duration(left)} left"
        step = self.state.step
        events.emit("progress", node=NODE, text=text, fraction=fraction, step=step)
        learning_rate = float(self.model.optimizer.learning_rate)
        scalars = {"loss": loss, "tokens_per_second": rate, "learning_rate": learning_rate}
        self.writer.write("train", scalars, step)

    def _fraction(self) -> float:
        """The share of the training that is complete, by the limit that is nearest."""
        limits, state, fractions = self.training, self.state, [0.0]
        if limits.max_epochs:
            epochs = state.epoch + state.epoch_batches / self.batches_per_epoch
            fractions.append(epochs / limits.max_epochs)
        if limits.max_steps:
            fractions.append(state.step / limits.max_steps)
        if limits.max_minutes:
            fractions.append(state.seconds / (60 * limits.max_minutes))
        return min(1.0, max(fractions))


class PeriodicCheckpoint(keras.callbacks.Callback):
    """Writes ``last.npz`` every ``interval`` seconds, and raises the errors of the writes."""

    def __init__(self, checkpoints: Checkpoints, progress: TrainingProgress, interval: float):
        super().__init__()
        self.checkpoints, self.progress, self.interval = checkpoints, progress, interval
        self._last_save = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.checkpoints.check()
        if time.monotonic() - self._last_save >= self.interval:
            current_backend().synchronize(self.model)
            self.progress.count_tokens()
            self.checkpoints.save(self.model, self.progress.state)
            self._last_save = time.monotonic()


def format_evaluation(entry: Mapping[str, float]) -> str:
    """Format an evaluation as short text: perplexity or loss, then the metrics."""
    name, digits = ("perplexity", 2) if "perplexity" in entry else ("loss", 4)
    values = [f"{name} {entry[name]:.{digits}f}"]
    for metric in METRICS:
        if metric in entry and metric != name:
            kind = METRICS[metric]
            values.append(f"{kind.label} {entry[metric]:.{2 if kind.scale == 100.0 else 4}f}")
    return " · ".join(values)
