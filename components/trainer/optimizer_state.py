"""The state of Adam: its moments, its position in the schedule, and resuming from both."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError

KEY = "training.warm_start.optimizer"
_MIN_LEARNING_RATE = 1e-6  # a model does not learn below it


def adam_moments(optimizer: Any) -> list[Any]:
    """Adam's first moments of all weights, then its second moments, as variables."""
    adam = unwrap(optimizer)
    return [*adam._momentums, *adam._velocities]


def learning_rate_after(optimizer: Any, updates: int) -> float:
    """The learning rate of the update that follows ``updates`` updates."""
    return float(unwrap(optimizer)._learning_rate(updates * _batches_per_update(optimizer)))


def check_optimizer_state(
    optimizer: Any, updates: int, values: Sequence[np.ndarray], name: str
) -> None:
    """Check that a training can continue with this optimizer state.

    Args:
        optimizer: the built optimizer.
        updates: the updates of the earlier training.
        values: the values of its ``adam_moments``.
        name: the name of the earlier model in messages.

    Raises:
        UserError: other weights are trained, or the schedule has ended.
    """
    if [value.shape for value in values] != [tuple(m.shape) for m in adam_moments(optimizer)]:
        raise UserError(
            f"{name} was trained with other trainable weights, so its optimizer state does not "
            "fit this model.",
            where=KEY,
            remedy="Set it to false to take over the weights only.",
        )
    rate = learning_rate_after(optimizer, updates)
    is_warming_up = updates < unwrap(optimizer)._learning_rate.warmup_steps
    if rate < _MIN_LEARNING_RATE and not is_warming_up:
        raise UserError(
            f"The learning rate schedule has ended after the {updates:,} steps of {name}: the "
            f"learning rate would be {rate:.1g}.",
            where=KEY,
            remedy="Set it to false to restart the schedule, or give training.schedule an end "
            "that lies beyond all trainings.",
        )


def restore_optimizer_state(optimizer: Any, updates: int, values: Sequence[np.ndarray]) -> None:
    """Load moments and position in the schedule; see ``check_optimizer_state``."""
    for variable, value in zip(adam_moments(optimizer), values, strict=True):
        variable.assign(value)
    set_updates(optimizer, updates)


def set_updates(optimizer: Any, updates: int) -> None:
    """Set the number of updates that a built optimizer has made."""
    unwrap(optimizer)._iterations.assign(updates * _batches_per_update(optimizer))


def _batches_per_update(optimizer: Any) -> int:
    """The batches of an update; Keras counts iterations in batches."""
    return int(unwrap(optimizer).gradient_accumulation_steps or 1)


def unwrap(optimizer: Any) -> Any:
    """The optimizer inside the one that scales the loss for float16."""
    return getattr(optimizer, "inner_optimizer", optimizer)
