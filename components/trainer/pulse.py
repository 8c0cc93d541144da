"""What happens after every batch: counting, limits, telling, and saving now and then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from components import events
from components.trainer.checkpoint import Checkpoints, Position
from components.trainer.ema import MovingAverage
from models.metrics import METRICS

NODE = "Trainer"


class Pulse(keras.callbacks.Callback):
    """Counts, watches the limits, and says once a second how the training goes.

    Args:
        position: what is counted.
        training: the YAML's section ``training``.
        epoch_batches: the batches of an epoch.
        writer: of TensorBoard's summaries.
        average: takes in the weights after every update.
        agreed: gives all workers the chief's numbers where several train; None where one does.
        chief: whether this worker ends a training whose loss is no number. The others do not, or
            the chief might hear that they are gone before it hears why.
    """

    def __init__(
        self,
        position: Position,
        training: Mapping[str, Any],
        epoch_batches: int,
        writer: tf.summary.SummaryWriter,
        average: MovingAverage | None = None,
        agreed: Callable[[Sequence[float]], Sequence[float]] | None = None,
        chief: bool = True,
    ):
        super().__init__()
        self._chief = chief
        self.position, self.training, self.writer, self._agreed = position, training, writer, agreed
        self.epoch_batches, self.average = epoch_batches, average
        self._seconds, self._due = position.seconds, position.batches
        self._told = self._last = time.monotonic()
        self._tokens_told = self._tokens_counted = 0.0

    def restart(self) -> None:
        """The clock goes on from now, and the running means begin anew."""
        self.model.reset_metrics()
        self._last = self._told = time.monotonic()
        self._tokens_told = self._tokens_counted = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.restart()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.monotonic()
        self.position.batch += 1
        self.position.batches += 1
        self.position.seconds += now - self._last
        self._last = now
        if self.training["max_minutes"]:
            self._look_at_the_clock()
        if self.position.batches % self.training["accumulate"] == 0:
            self.position.step += 1
            if self.average is not None:
                self.average.update(tf.constant(float(self.position.step)))
        if now - self._told >= 1.0:
            self._tell(now)
        if self.limit():
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._tell(time.monotonic())

    def limit(self) -> str:
        """Which limit is reached, or the empty string."""
        limits, position = self.training, self.position
        if limits["max_steps"] and position.step >= limits["max_steps"]:
            return f"max_steps: {position.step}"
        if limits["max_minutes"] and self._seconds >= 60 * limits["max_minutes"]:
            return f"max_minutes: {self._seconds / 60:.1f}"
        if limits["max_epochs"] and position.epoch >= limits["max_epochs"]:
            return f"max_epochs: {position.epoch}"
        return ""

    def _look_at_the_clock(self) -> None:
        """Brings the time that ``max_minutes`` limits up to date.

        Of several workers one clock ends the training of all. They ask for it about once a second,
        and all before the same batch, for so many batches as the chief says make a second.
        """
        position = self.position
        if self._agreed is None:
            self._seconds = position.seconds
        elif position.batches >= self._due:
            pace = position.batches / max(position.seconds, 1e-9)
            position.seconds, pace = self._agreed((position.seconds, pace))
            self._seconds, self._due = position.seconds, position.batches + max(1, int(pace))

    def count(self) -> None:
        """Brings ``position.tokens`` up to date."""
        # The running mean's own weights count the real units since the last restart.
        tokens = float(self.model.plain_loss.count)
        self.position.tokens += int(tokens - self._tokens_counted)
        self._tokens_counted = tokens

    def loss(self) -> float:
        """The mean loss of a unit since the last restart.

        Raises:
            FloatingPointError: it is no number, and this worker is the chief.
        """
        loss = float(self.model.plain_loss.result())
        if self._chief and not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss is {loss} at step {self.position.step}; a lower learning rate, a "
                "longer warm-up, a smaller clip_norm or float32 usually mend this"
            )
        return loss

    def _tell(self, now: float) -> None:
        self.count()
        if not self._tokens_counted:
            return  # an evaluation has just begun the means anew
        rate = (self._tokens_counted - self._tokens_told) / max(now - self._told, 1e-9)
        self._told, self._tokens_told = now, self._tokens_counted
        loss = self.loss()
        fraction = self._fraction()
        left = self.position.seconds * (1 - fraction) / fraction if fraction > 0.005 else None
        text = (
            f"epoch {self.position.epoch + 1} · step {self.position.step} · "
            f"{rate:,.0f} {self.model.unit}/s · loss {loss:.3f}"
        )
        if self.position.history:
            text += f" · eval {summary(self.position.history[-1])}"
        if left is not None:
            text += f" · {_clock(left)} left"
        events.emit(
            "progress",
            node=NODE,
            text=text,
            fraction=fraction,
            epoch=self.position.epoch + 1,
            step=self.position.step,
            tokens_per_second=rate,
            loss=loss,
            seconds_left=left,
        )
        with self.writer.as_default(step=self.position.step):
            tf.summary.scalar("train/loss", loss)
            tf.summary.scalar("train/tokens_per_second", rate)
            tf.summary.scalar("train/learning_rate", float(self.model.optimizer.learning_rate))

    def _fraction(self) -> float:
        """How much of the training is done at most: by epochs, steps or minutes."""
        limits, position, parts = self.training, self.position, [0.0]
        if limits["max_epochs"]:
            epochs = position.epoch + position.batch / self.epoch_batches
            parts.append(epochs / limits["max_epochs"])
        if limits["max_steps"]:
            parts.append(position.step / limits["max_steps"])
        if limits["max_minutes"]:
            parts.append(position.seconds / (60 * limits["max_minutes"]))
        return min(1.0, max(parts))


class Saver(keras.callbacks.Callback):
    """Writes ``last.npz`` every so many seconds."""

    def __init__(self, checkpoints: Checkpoints, pulse: Pulse, every: float):
        super().__init__()
        self.checkpoints, self.pulse, self.every = checkpoints, pulse, every
        self._saved = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if time.monotonic() - self._saved >= self.every:
            self.pulse.count()
            self.checkpoints.save(self.model, self.pulse.position)
            self._saved = time.monotonic()


def summary(entry: Mapping[str, float]) -> str:
    """An evaluation in a few words."""
    name, digits = ("perplexity", 2) if "perplexity" in entry else ("loss", 4)
    told = [f"{name} {entry[name]:.{digits}f}"]
    for metric, kind in METRICS.items():
        if metric in entry and metric != name:
            told.append(f"{kind.label} {entry[metric]:.{2 if kind.scale == 100.0 else 4}f}")
    return " · ".join(told)


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes = f"{rest // 60:02d}" if hours else str(rest // 60)
    return f"{hours}:{minutes}:{rest % 60:02d}" if hours else f"{minutes}:{rest % 60:02d}"
