"""Evaluation during training: loss, decoded metrics, best weights, early stopping."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import keras

from regard.components.settings.trainer import NODE, TrainerConfig
from regard.components.trainer.backends import current_backend
from regard.components.trainer.backends.base import EpochData
from regard.components.trainer.batches import Batches
from regard.components.trainer.callbacks import TrainingProgress, format_evaluation
from regard.components.trainer.checkpoint import Checkpoints
from regard.core import events
from regard.models import metrics
from regard.models.tasks.network import Batch, BatchDecoder, Processors
from regard.models.trainable_model import TrainableModel

# Computes metrics of a model from its decoded outputs.
MetricFn = Callable[[TrainableModel], dict[str, float]]

LOSS = "loss"  # the default of ``early_stopping.metric``

# Keys of a history entry that describe the training and not the model.
PROGRESS_KEYS = ("step", "epoch", "seconds", "learning_rate", "tokens_per_second", "train_loss")


class ValidationCallback(keras.callbacks.Callback):
    """Evaluates the eval split after each epoch, or every ``evaluate_every`` steps.

    It stores the best weights and the snapshots, and decides about early stopping.

    Args:
        data: the batches of the eval split.
        progress: the counters of the training, and its clock, which stops during an evaluation.
        checkpoints: the files for the best weights and the snapshots.
        compute_metrics: computes metrics from decoded outputs, such as ``bleu``.
    """

    def __init__(
        self,
        data: EpochData,
        progress: TrainingProgress,
        checkpoints: Checkpoints,
        compute_metrics: MetricFn | None = None,
    ):
        super().__init__()
        self.data, self.progress, self.checkpoints = data, progress, checkpoints
        self.compute_metrics = compute_metrics
        self.state, self.training, self.writer = progress.state, progress.training, progress.writer
        self._previous = (self.state.seconds, self.state.tokens)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        every = self.training.evaluate_every
        if every and self.state.step % every == 0 and not self.is_up_to_date():
            self.run()
            self.progress.restart()
            if self.should_stop():
                self.model.stop_training = True

    def is_up_to_date(self) -> bool:
        """Whether the present weights are evaluated; the initial ones never are."""
        history = self.state.history
        return self.state.step == (history[-1]["step"] if history else 0)

    def run(self) -> None:
        """Evaluate, record the result, and store the weights if required."""
        state = self.state
        current_backend().synchronize(self.model)
        self.progress.count_tokens()
        entry = {
            "step": state.step,
            "epoch": state.epoch + (state.epoch_batches == self.progress.batches_per_epoch),
            "seconds": round(state.seconds, 1),
            "learning_rate": float(self.model.optimizer.learning_rate),
            "tokens_per_second": round(self._tokens_per_second(), 1),
        }
        if float(self.model.loss_mean.count):  # zero right after a resume
            entry["train_loss"] = self.progress.loss()
        epoch = state.epoch + (state.epoch_batches > 0)  # of the last batch, as in progress
        text = f"epoch {epoch} · step {state.step} · evaluating"
        events.emit("progress", node=NODE, text=text, step=state.step)
        entry |= self.evaluate()
        state.history.append(entry)
        self._update_best(self._score(entry))
        evaluated = {name: value for name, value in entry.items() if name not in PROGRESS_KEYS}
        self.writer.write("eval", evaluated, state.step)
        self.writer.flush()
        text = text.replace("evaluating", f"eval {format_evaluation(entry)}")
        events.emit("progress", node=NODE, text=text, step=state.step)

    def evaluate(self) -> dict[str, float]:
        """Loss and metrics of the present weights."""
        return self.progress.broadcast(self._evaluate_locally)

    def _evaluate_locally(self) -> dict[str, float]:
        results = self.model.evaluate(self.data.evaluation(), verbose=0, return_dict=True)
        return {
            **self.model.evaluation_metrics(results),
            **(self.compute_metrics(self.model) if self.compute_metrics else {}),
        }

    def should_stop(self) -> str:
        """The reason for early stopping; empty if the training is to continue."""
        stop, evals = self.training.early_stopping, self.state.evals_since_best
        if stop and evals >= stop.patience:
            return f"early stop: {evals} evaluations without a better {stop.metric}"
        return ""

    def _score(self, entry: Mapping[str, float]) -> float:
        """The value that evaluations are compared by; lower is better."""
        name = self.training.early_stopping.metric if self.training.early_stopping else LOSS
        sign = -1 if name != LOSS and metrics.METRICS[name].higher_is_better else 1
        # A correlation is undefined if all outputs are equal: worse than any number.
        return sign * entry[name] if math.isfinite(entry[name]) else math.inf

    def _update_best(self, score: float) -> None:
        state = self.state
        min_delta = self.training.early_stopping.min_delta if self.training.early_stopping else 0.0
        if score < state.best_score - min_delta:
            state.best_score, state.evals_since_best, state.best_step = score, 0, state.step
            self.checkpoints.save_best(self.model, state)
        else:
            state.evals_since_best += 1
        average = self.training.checkpoint_averaging
        if average:
            state.snapshots.append([state.step, score])
            if average.of == "best":  # the first of equal scores
                state.snapshots.sort(key=lambda snapshot: (snapshot[1], snapshot[0]))
                del state.snapshots[average.checkpoints :]
            else:
                del state.snapshots[: -average.checkpoints]
            if state.step in (step for step, _ in state.snapshots):
                self.checkpoints.save_snapshot(self.model, state)

    def _tokens_per_second(self) -> float:
        """Tokens, or other units, per second since the last evaluation."""
        seconds, tokens = self._previous
        self._previous = (self.state.seconds, self.state.tokens)
        return (self.state.tokens - tokens) / max(self.state.seconds - seconds, 1e-9)


def metric_function(
    eval_batches: Batches,
    config: TrainerConfig,
    processors: Processors,
    vocabulary_sizes: Mapping[str, int],
    objective: str = LOSS,
) -> MetricFn | None:
    """Return a function that decodes the eval split and computes ``early_stopping.metric``.

    Without one it computes the task's first one. A float32 model decodes, as the exported
    one does, with the task's fast search. References are taken from the transformed eval split, so
    the tokenizer normalizes both sides: compare values within one training, not between corpora.

    Args:
        eval_batches: the eval split.
        config: the configuration of the training.
        processors: the tokenizer of each text feature.
        vocabulary_sizes: one per text feature.
        objective: a further metric, or the loss, which is measured anyway.

    Returns:
        The function; None if the configuration requires no decoding.
    """
    training = config.training
    stop_metric = training.early_stopping.metric if training.early_stopping else LOSS
    names = [name for name in dict.fromkeys((stop_metric, objective)) if name != LOSS]
    if not names and not training.validation_rows:
        return None
    names = names or [eval_batches.network.description.metrics[0]]
    rows = dataclasses.replace(
        eval_batches,
        max_rows=training.validation_rows,
        fixed_shapes=current_backend().always_compiles,
    )
    network, backend = eval_batches.network, current_backend()
    batches: list[Batch] = []
    sizes: list[int] = []  # the rows of each batch that are no padding
    float_model: TrainableModel | None = None
    decoder: BatchDecoder | None = None
    decode: Any = None

    def compute(model: TrainableModel) -> dict[str, float]:
        nonlocal float_model, decoder, decode
        if not batches:
            numbers = range(rows.plan(None))
            batches.extend(rows.read(None, number) for number in numbers)
            sizes.extend(rows.count_rows(None, number) for number in numbers)
        if float_model is None:
            float_model = model
            if training.precision != "float32":
                settings = training.model_copy(update={"precision": "float32"})
                float_model = network.build(config.model, settings, vocabulary_sizes)
        if decoder is None:
            decoder = network.batch_decoder(float_model, processors, config.model, config.search)
            decode = backend.compile_decoder(float_model, decoder, rows)
        if float_model is not model:
            float_model.set_weights(model.get_weights())
        outputs: list[Any] = []
        references: list[list[Any]] = []
        for batch, size in zip(batches, sizes, strict=True):
            computed = decode(*(batch[name] for name in decoder.inputs))
            outputs += decoder.outputs(computed, batch)[:size]
            references += [[reference] for reference in decoder.references(batch)[:size]]
        options = metrics.MetricOptions(tokenize=training.validation_tokenize)
        values = metrics.compute(names, metrics.Rows(outputs, references), options)
        return {name: round(metric.value, 4) for name, metric in zip(names, values, strict=True)}

    return compute
