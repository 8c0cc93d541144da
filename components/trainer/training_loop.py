"""The training loop: epochs until a limit is reached."""

import contextlib

import keras

from regard.components.settings.trainer import NODE
from regard.components.trainer.backends import current_backend
from regard.components.trainer.batches import Batches
from regard.components.trainer.callbacks import (
    PeriodicCheckpoint,
    TrainingProgress,
    format_evaluation,
)
from regard.components.trainer.checkpoint import Checkpoints, TrainState
from regard.components.trainer.device_group import SharedTrainStep
from regard.components.trainer.summaries import SummaryWriter
from regard.components.trainer.training_length import TrainingLength, unused_settings
from regard.components.trainer.validation import MetricFn, ValidationCallback
from regard.core import events
from regard.core.errors import UserError
from regard.models.settings.training import TrainingConfig
from regard.models.trainable_model import TrainableModel


def set_seed(training: TrainingConfig) -> None:
    """Set all seeds; with ``deterministic``, sums keep a fixed order in the whole process."""
    keras.utils.set_random_seed(training.seed)
    if training.deterministic:
        current_backend().make_deterministic()


def fit(
    model: TrainableModel,
    train_batches: Batches,
    eval_batches: Batches,
    training: TrainingConfig,
    checkpoints: Checkpoints,
    log_dir: str,
    compute_metrics: MetricFn | None = None,
    train_step: SharedTrainStep | None = None,
) -> TrainState:
    """Train until the first limit, then load the best weights or their average into the model.

    An interrupted training resumes from its last checkpoint: the same weights, optimizer state,
    random numbers and order of batches. So does a training that a lower limit has ended.

    Args:
        model: the compiled model.
        train_batches: the train split; shared by the group of ``train_step`` if it is given.
        eval_batches: the eval split.
        training: the section ``training``.
        checkpoints: the files of this training.
        log_dir: the folder for TensorBoard.
        compute_metrics: computes metrics from decoded outputs; None for the loss only.
        train_step: trains on several devices; None for a single one. Only the chief evaluates and
            writes, and only its model ends with the best weights.

    Returns:
        The final state; ``stop_reason`` names the limit.

    Raises:
        FloatingPointError: the loss is not finite.
        UserError: the training ended before its first update.
        OSError: a checkpoint could not be written.
    """
    group = train_step.group if train_step else None
    is_chief = group is None or group.is_chief
    state = checkpoints.restore(model) or TrainState()
    if train_step is not None:
        state = TrainState(**train_step.group.broadcast_object(lambda: vars(state)))
        train_step.initialize()
    model.reset_metrics()  # the checkpoint contains them, but their tokens are counted already
    length = TrainingLength.of(training, train_batches.size)
    if is_chief and not state.batches:
        for text in unused_settings(training, length):
            events.emit("warning", node=NODE, text=text)
    if state.batches:
        text = f"resumed at step {state.step}, epoch {state.epoch + 1}"
        events.emit("note", node=NODE, text=text)
    writer = SummaryWriter(log_dir if is_chief else None)
    progress = TrainingProgress(state, training, train_batches.size, writer, group)
    backend = current_backend()
    train_data = backend.data(train_batches)
    evaluated = backend.data(eval_batches)
    validation = ValidationCallback(evaluated, progress, checkpoints, compute_metrics)
    saver = PeriodicCheckpoint(checkpoints, progress, training.checkpoint_seconds)
    for callback in (progress, validation):
        callback.set_model(model)  # they also work between two calls of Keras's fit
    if state.stop_reason:  # limits may have been raised since, as those of a trial are
        state.stop_reason = progress.limit() or validation.should_stop()
    with contextlib.closing(checkpoints), contextlib.closing(writer):
        while not state.stop_reason:
            # The checkpoint may lie between the batch that reached a limit and the end.
            may_continue = not (progress.limit() or validation.should_stop())
            if state.epoch_batches < train_batches.size and may_continue:
                # For each batch, Keras calls the model, its `compute_loss` (`TrainableModel`) and
                # the optimizer, or with several devices the `train_step`.
                model.fit(
                    train_data.epoch(state.epoch, skip=state.epoch_batches),
                    shuffle=False,  # the batches are shuffled already
                    verbose=0,
                    callbacks=backend.callbacks([progress, validation, saver], model),
                )
            if state.epoch_batches == train_batches.size:
                state.epoch, state.epoch_batches = state.epoch + 1, 0
            limit = progress.limit()
            if (limit or not training.evaluate_every) and not validation.is_up_to_date():
                validation.run()
            state.stop_reason = limit or validation.should_stop()
            checkpoints.save(model, state)
    if not state.step:
        raise UserError(
            f"The training ended by {state.stop_reason} before its first step, which takes "
            f"{training.gradient_accumulation_steps} batches.",
            where="training.gradient_accumulation_steps",
            remedy="Accumulate fewer batches, or train longer.",
        )
    if is_chief and length.steps is None:  # only time or evaluations limited the training
        reached = TrainingLength(state.step, None, is_exact=True)
        for text in unused_settings(training, reached):
            events.emit("warning", node=NODE, text=text)
    if state.snapshots:
        _load_average(model, state, validation, checkpoints)
    else:
        checkpoints.restore_best(model)
    return state


def _load_average(
    model: TrainableModel,
    state: TrainState,
    validation: ValidationCallback,
    checkpoints: Checkpoints,
) -> None:
    """Load the mean of the snapshots into the model, and evaluate it."""
    steps = sorted(step for step, _ in state.snapshots)
    checkpoints.restore_average(model, steps)
    state.average = {"steps": steps, **validation.evaluate()}
    text = f"average of the weights of {len(steps)} evaluations: {format_evaluation(state.average)}"
    # There is no best evaluation if the metric was undefined in all of them.
    for best in (entry for entry in state.history if entry["step"] == state.best_step):
        text += f"; the best single one: {format_evaluation(best)}"
    events.emit("note", node=NODE, text=text)
