"""The training itself: epochs until something ends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from components import events
from components.errors import UserError
from components.trainer.checkpoint import Checkpoints, Position
from components.trainer.data import Batches
from components.trainer.ema import MovingAverage
from components.trainer.evaluating import Decode, Evaluations, restore_rate
from components.trainer.pulse import NODE, Pulse, Saver, summary
from components.trainer.shares import ByFile, ByRow
from components.trainer.together import Together


def fit(
    model: keras.Model,
    train: Batches | ByRow | ByFile,
    evaluation: Batches,
    training: Mapping[str, Any],
    checkpoints: Checkpoints,
    log_dir: str,
    decode: Decode | None = None,
    together: Together | None = None,
) -> Position:
    """Trains until the first limit, and leaves the model with its best weights or their average.

    An interrupted training goes on from its last checkpoint: the same weights, optimizer state,
    random numbers and order of batches. So does one that has ended by a lower limit.

    Args:
        model: compiled.
        train: the train split.
        evaluation: the eval split.
        training: the YAML's section ``training``.
        checkpoints: of this training.
        log_dir: for TensorBoard.
        decode: further measures of a model, from its answers, if there are to be any.
        together: what trains the model on several devices, with their shares in ``train``. The
            chief alone evaluates and writes; only there the model ends with its best weights.

    Returns:
        Where the training ended; ``finished`` says why.

    Raises:
        FloatingPointError: the loss is no longer a number.
    """
    chief = together is None or together.team.chief
    average = MovingAverage(model, training["ema"]["decay"]) if training["ema"] and chief else None
    checkpoints.also = average.variables if average else ()
    position = checkpoints.restore(model) or Position()
    agreed = None
    more: dict[str, Any] = {}
    if together is not None:
        position = Position(**together.team.told(lambda: vars(position)))
        together.begin()
        agreed = together.team.agreed
        more = {"told": together.team.told}
    _same_batches(position, train)
    restore_rate(model, position.rate_scale)
    model.reset_metrics()  # the checkpoint has them too, and their tokens are counted already
    if position.batches:
        events.emit(
            "note", node=NODE, text=f"resumed at step {position.step}, epoch {position.epoch + 1}"
        )
    writer = tf.summary.create_file_writer(log_dir) if chief else tf.summary.create_noop_writer()
    pulse = Pulse(position, training, train.size(), writer, average, agreed, chief)
    held_out = evaluation.epoch().cache()
    evaluations = Evaluations(
        held_out, pulse, training, checkpoints, writer, average, decode, **more
    )
    saver = Saver(checkpoints, pulse, training["checkpoint_seconds"])
    for callback in (pulse, evaluations):
        callback.set_model(model)  # both work between two calls of Keras's fit too
    if position.finished:  # by limits that may have been raised since, as those of a trial are
        position.finished = pulse.limit() or evaluations.enough()
    while not position.finished:
        # A checkpoint may lie between the batch that reached a limit and the end.
        if position.batch < train.size() and not (pulse.limit() or evaluations.enough()):
            model.fit(
                train.epoch(position.epoch, skip=position.batch),
                shuffle=False,  # the batches are shuffled already
                verbose=0,
                callbacks=[pulse, evaluations, saver],
            )
        if position.batch == train.size():
            position.epoch, position.batch = position.epoch + 1, 0
        ended = pulse.limit()
        if (ended or not training["evaluate_every"]) and not evaluations.done():
            evaluations.run()
        position.finished = ended or evaluations.enough()
        checkpoints.save(model, position)
    if not position.step:
        raise UserError(
            f"the training ended by {position.finished} before its first step, which takes "
            f"{training['accumulate']} batches",
            where="training.accumulate",
            remedy="Accumulate fewer batches, or train longer.",
        )
    if position.snapshots:
        _average(model, position, evaluations, checkpoints)
    else:
        checkpoints.restore_best(model)
    return position


def _same_batches(position: Position, train: Batches | ByRow | ByFile) -> None:
    """Begins an epoch again whose batches are others than those that a checkpoint has counted."""
    if position.files_apart == train.files_apart:
        return
    position.files_apart = train.files_apart
    if position.batch:
        position.batch = 0
        text = "the files are divided among another number of workers: the epoch begins again"
        events.emit("note", node=NODE, text=text)


def _average(
    model: keras.Model, position: Position, evaluations: Evaluations, checkpoints: Checkpoints
) -> None:
    """Gives the model the mean of the kept weights, and records how good it is."""
    steps = sorted(step for step, _ in position.snapshots)
    checkpoints.restore_average(model, steps)
    position.averaged = {"steps": steps, **evaluations.measure()}
    best = next(entry for entry in position.history if entry["step"] == position.best_step)
    text = f"average of the weights of {len(steps)} evaluations: {summary(position.averaged)}"
    events.emit("note", node=NODE, text=f"{text}; the best of all alone: {summary(best)}")
