"""Evaluations while training: what is measured, which weights are kept, when it is enough."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from components import events
from components.trainer.checkpoint import Checkpoints
from components.trainer.ema import MovingAverage
from components.trainer.pulse import NODE, Pulse, summary
from models import metrics
from models.schedules import Plateau
from models.trained import TrainedModel

Decode = Callable[[TrainedModel], dict[str, float]]

# What an evaluation's entry tells about the training, not about the model.
NOT_MEASURED = ("step", "epoch", "seconds", "learning_rate", "tokens_per_second", "train_loss")


class Evaluations(keras.callbacks.Callback):
    """Measures the eval split, each epoch or every so many steps, and draws the consequences.

    Args:
        held_out: the batches of the eval split.
        pulse: the counts, and the clock that stands still meanwhile.
        training: the YAML's section ``training``.
        checkpoints: where the best weights and the snapshots go.
        writer: of TensorBoard's summaries.
        average: whose weights are measured, in place of the model's own.
        decode: further measures of a model, from its answers (such as ``bleu``).
        told: hands on what one worker measures where several train; it is given what measures.
    """

    def __init__(
        self,
        held_out: tf.data.Dataset,
        pulse: Pulse,
        training: Mapping[str, Any],
        checkpoints: Checkpoints,
        writer: tf.summary.SummaryWriter,
        average: MovingAverage | None = None,
        decode: Decode | None = None,
        told: Callable[[Callable[[], Any]], Any] = lambda find: find(),
    ):
        super().__init__()
        self.held_out, self.pulse, self.training = held_out, pulse, training
        self.checkpoints, self.writer = checkpoints, writer
        self.average, self.decode, self._told = average, decode, told
        self.position = pulse.position
        self._since = (self.position.seconds, self.position.tokens)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        every = self.training["evaluate_every"]
        if every and self.position.step % every == 0 and not self.done():
            self.run()
            self.pulse.restart()
            if self.enough():
                self.model.stop_training = True

    def done(self) -> bool:
        """Whether these weights have been evaluated; the initial ones never are."""
        history = self.position.history
        return self.position.step == (history[-1]["step"] if history else 0)

    def run(self) -> None:
        """Evaluates, records, and keeps the weights where they are to be kept."""
        position = self.position
        self.pulse.count()
        entry = {
            "step": position.step,
            "epoch": position.epoch + (position.batch == self.pulse.epoch_batches),
            "seconds": round(position.seconds, 1),
            "learning_rate": float(self.model.optimizer.learning_rate),
            "tokens_per_second": round(self._speed(), 1),
        }
        if float(self.model.plain_loss.count):  # nothing has been seen since a resume
            entry["train_loss"] = self.pulse.loss()
        with self.average.in_place() if self.average else contextlib.nullcontext():
            entry |= self.measure()
            position.history.append(entry)
            self._keep(self._value(entry))
        with self.writer.as_default(step=position.step):
            for name, value in entry.items():
                if name not in NOT_MEASURED:
                    tf.summary.scalar(f"eval/{name}", value)
        self.writer.flush()
        text = f"epoch {entry['epoch']} · step {position.step} · eval {summary(entry)}"
        events.emit("progress", node=NODE, text=text, **entry)

    def measure(self) -> dict[str, float]:
        """The measures of the model's present weights."""
        return self._told(self._measured)

    def _measured(self) -> dict[str, float]:
        results = self.model.evaluate(self.held_out, verbose=0, return_dict=True)
        return {
            **self.model.measures(results),
            **(self.decode(self.model) if self.decode else {}),
        }

    def enough(self) -> str:
        """Why it is enough: no better evaluation for too long; or the empty string."""
        stop, stale = self.training["early_stop"], self.position.stale
        if stop and stale >= stop["patience"]:
            return f"early stop: {stale} evaluations without a better {stop['metric']}"
        return ""

    def _value(self, entry: Mapping[str, float]) -> float:
        """What evaluations are compared by; lower is better."""
        name = (self.training["early_stop"] or {}).get("metric", "loss")
        sign = -1 if name != "loss" and metrics.METRICS[name].higher_is_better else 1
        # Of answers that are all alike there is no correlation: worse than any other.
        return sign * entry[name] if math.isfinite(entry[name]) else math.inf

    def _keep(self, value: float) -> None:
        position = self.position
        stop = self.training["early_stop"] or {}
        if value < position.best - stop.get("min_delta", 0.0):
            position.best, position.stale, position.waited = value, 0, 0
            position.best_step = position.step
            self.checkpoints.save_best(self.model, position)
        else:
            position.stale += 1
            position.waited += 1
            self._lower_rate()
        average = self.training["average"]
        if average:
            position.snapshots.append([position.step, value])
            if average["of"] == "best":  # the first of equals
                position.snapshots.sort(key=lambda one: (one[1], one[0]))
                del position.snapshots[average["checkpoints"] :]
            else:
                del position.snapshots[: -average["checkpoints"]]
            if position.step in (step for step, _ in position.snapshots):
                self.checkpoints.save_snapshot(self.model, position)

    def _lower_rate(self) -> None:
        rate, patience = _schedule(self.model), self.training["schedule"].get("patience")
        if isinstance(rate, Plateau) and self.position.waited >= patience:
            rate.cut()
            self.position.waited, self.position.rate_scale = 0, float(rate.scale)

    def _speed(self) -> float:
        """Tokens, or other units, a second since the last evaluation."""
        seconds, tokens = self._since
        self._since = (self.position.seconds, self.position.tokens)
        return (self.position.tokens - tokens) / max(self.position.seconds - seconds, 1e-9)


def restore_rate(model: keras.Model, scale: float) -> None:
    """Puts a learning rate that plateaus have lowered back to where it was."""
    rate = _schedule(model)
    if isinstance(rate, Plateau):
        rate.scale.assign(scale)


def _schedule(model: keras.Model) -> Any:
    """The schedule itself; Keras gives the rate of the present step only."""
    optimizer = model.optimizer
    return getattr(optimizer, "inner_optimizer", optimizer)._learning_rate
