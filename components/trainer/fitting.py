"""The training itself: epochs until something ends them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from components import events
from components.trainer.checkpoint import Checkpoints, Position, Saver
from components.trainer.data import Batches
from models.schedules import schedule

NODE = "Trainer"


def compile_model(model: keras.Model, training: Mapping[str, Any]) -> None:
    """Gives the model its optimizer, as the YAML's section ``training`` says."""
    optimizer = keras.optimizers.Adam(
        schedule(training["learning_rate"], training["schedule"]),
        beta_2=0.98,
        epsilon=1e-9,
        global_clipnorm=training["clip_norm"],
    )
    # On TensorFlow XLA cannot compile the gradient of keras.ops.scan (Keras 3.15).
    model.compile(optimizer=optimizer, jit_compile=False)
    model.optimizer.build(model.trainable_variables)


def fit(
    model: keras.Model,
    train: Batches,
    evaluation: Batches,
    training: Mapping[str, Any],
    checkpoints: Checkpoints,
    log_dir: str,
) -> Position:
    """Trains until the first limit, and leaves the model with its best weights.

    An interrupted training goes on from its last checkpoint: the same weights, optimizer state,
    random numbers and order of batches.

    Returns:
        Where the training ended; ``finished`` says why.

    Raises:
        FloatingPointError: the loss is no longer a number.
    """
    position = checkpoints.restore(model) or Position()
    if position.step:
        events.emit(
            "note", node=NODE, text=f"resumed at step {position.step}, epoch {position.epoch + 1}"
        )
    writer = tf.summary.create_file_writer(log_dir)
    pulse = Pulse(position, training, train.size(), writer)
    saver = Saver(checkpoints, position, training["checkpoint_seconds"])
    held_out = evaluation.epoch().cache()
    while not position.finished:
        if position.batch < train.size():
            model.fit(
                train.epoch(position.epoch, skip=position.batch),
                shuffle=False,  # the batches are shuffled already
                verbose=0,
                callbacks=[pulse, saver],
            )
        if position.batch == train.size():
            position.epoch, position.batch = position.epoch + 1, 0
        _evaluate(model, held_out, position, training, checkpoints, writer)
        position.finished = pulse.limit() or _stale(position, training)
        checkpoints.save(model, position)
    checkpoints.restore_best(model)
    return position


def _evaluate(
    model: keras.Model,
    held_out: tf.data.Dataset,
    position: Position,
    training: Mapping[str, Any],
    checkpoints: Checkpoints,
    writer: tf.summary.SummaryWriter,
) -> None:
    """Measures the eval split, and keeps the weights if they are the best so far."""
    results = model.evaluate(held_out, verbose=0, return_dict=True)
    loss = float(results["nll"])
    stop = training["early_stop"] or {}
    if loss < position.best - stop.get("min_delta", 0.0):
        position.best, position.stale = loss, 0
        checkpoints.save_best(model, position)
    else:
        position.stale += 1
    entry = {
        "step": position.step,
        "epoch": position.epoch,
        "seconds": round(position.seconds, 1),
        "loss": loss,
        "perplexity": math.exp(min(loss, 50.0)),
        "accuracy": float(results["accuracy"]),
    }
    position.history.append(entry)
    with writer.as_default(step=position.step):
        for name in ("loss", "perplexity", "accuracy"):
            tf.summary.scalar(f"eval/{name}", entry[name])
    writer.flush()
    text = f"epoch {position.epoch} · eval perplexity {entry['perplexity']:.2f}"
    events.emit("progress", node=NODE, text=text, **entry)


def _stale(position: Position, training: Mapping[str, Any]) -> str:
    stop = training["early_stop"]
    if stop and position.stale >= stop["patience"]:
        return f"early stop: {position.stale} evaluations without a better loss"
    return ""


class Pulse(keras.callbacks.Callback):
    """Counts, watches the limits, and says once a second how the training goes."""

    def __init__(
        self,
        position: Position,
        training: Mapping[str, Any],
        epoch_batches: int,
        writer: tf.summary.SummaryWriter,
    ):
        super().__init__()
        self.position, self.training, self.writer = position, training, writer
        self.epoch_batches = epoch_batches
        self._told = self._last = time.monotonic()
        self._tokens_told = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._last = self._told = time.monotonic()
        self._tokens_told = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.monotonic()
        self.position.step += 1
        self.position.batch += 1
        self.position.seconds += now - self._last
        self._last = now
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
        if limits["max_minutes"] and position.seconds >= 60 * limits["max_minutes"]:
            return f"max_minutes: {position.seconds / 60:.1f}"
        if limits["max_epochs"] and position.epoch >= limits["max_epochs"]:
            return f"max_epochs: {position.epoch}"
        return ""

    def _tell(self, now: float) -> None:
        # The metrics' own weights count the real target pieces of the epoch so far.
        tokens = float(self.model.nll.count)
        rate = (tokens - self._tokens_told) / max(now - self._told, 1e-9)
        loss = float(self.model.nll.result())
        self.position.tokens += int(tokens - self._tokens_told)
        self._told, self._tokens_told = now, tokens
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss is {loss} at step {self.position.step}; a lower learning rate, a "
                "longer warm-up, a smaller clip_norm or float32 usually mend this"
            )
        fraction = self._fraction()
        left = self.position.seconds * (1 - fraction) / fraction if fraction > 0.005 else None
        text = (
            f"epoch {self.position.epoch + 1} · step {self.position.step} · "
            f"{rate:,.0f} tokens/s · loss {loss:.3f}"
        )
        if self.position.history:
            text += f" · eval perplexity {self.position.history[-1]['perplexity']:.2f}"
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


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes = f"{rest // 60:02d}" if hours else str(rest // 60)
    return f"{hours}:{minutes}:{rest % 60:02d}" if hours else f"{minutes}:{rest % 60:02d}"
