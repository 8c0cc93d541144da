"""One training step on JAX, as functions of values: the gradients of a batch, and the update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import keras

from regard.components.trainer.optimizer_state import unwrap
from regard.models.trainable_model import TrainableModel


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainingState:
    """The values of all variables, in the order in which Keras passes them to a step."""

    trainable: list[Any]
    non_trainable: list[Any]
    optimizer: list[Any]
    metrics: list[Any]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BatchResult:
    """What a batch changes.

    Attributes:
        units: the number of its units: target tokens, or rows.
        gradients: of its mean loss, one for each trained weight.
        non_trainable: the new values of the other weights and of the random state.
        sums: what the batch adds to the metrics.
    """

    units: Any
    gradients: list[Any]
    non_trainable: list[Any]
    sums: list[Any]


def train_step(model: TrainableModel, values: Any, data: Any) -> tuple[Any, Any]:
    """Return the logs and the values after a step: Keras's ``train_step`` with two differences.

    Keras gives the optimizer no metrics; here, one that accumulates gets the units of the batch in
    a variable of its own. Keras returns all metrics as logs, and waits for them after each step;
    here they stay in the state, and the logs are the number of units, on which callbacks wait
    later.
    """
    state = TrainingState(*values)
    return update(model, state, compute_batch(model, state, data))


def compute_batch(model: TrainableModel, state: TrainingState, data: Any) -> BatchResult:
    """Return the gradients of a batch, with the other changes that it makes."""
    x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
    # From 0, because a large sum would round the units of the batch.
    zeros = [jax.numpy.zeros_like(value) for value in state.metrics]
    (_, aux), gradients = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)(
        state.trainable,
        state.non_trainable,
        zeros,
        x,
        y,
        weight,
        training=True,
        optimizer_variables=state.optimizer,
    )
    _, _, non_trainable, sums = aux
    units = sums[_index(model.loss_mean.count, model.metrics_variables)]
    return BatchResult(units, gradients, non_trainable, sums)


def update(model: TrainableModel, state: TrainingState, batch: BatchResult) -> tuple[Any, Any]:
    """Return the logs and the values after the update of a batch, as ``train_step``."""
    optimizer_values = state.optimizer
    adam = unwrap(model.optimizer)
    if adam.gradient_accumulation_steps:
        place = _index(adam.batch_units, model.optimizer.variables)
        optimizer_values = _replaced(optimizer_values, place, batch.units)
    trainable, optimizer_values = model.optimizer.stateless_apply(
        optimizer_values, batch.gradients, state.trainable
    )
    metrics = [old + change for old, change in zip(state.metrics, batch.sums, strict=True)]
    return {"units": batch.units}, (trainable, batch.non_trainable, optimizer_values, metrics)


def _replaced(values: Sequence[Any], index: int, value: Any) -> list[Any]:
    """Return values with another one at a place."""
    return [*values[:index], value, *values[index + 1 :]]


def _index(variable: Any, variables: Sequence[Any]) -> int:
    """Return the place of a variable in a list."""
    return next(index for index, other in enumerate(variables) if other is variable)
