"""The optimizer's state of an old training, for a model that goes on with its weights."""

from __future__ import annotations

from collections.abc import Mapping

import keras
import numpy as np

from components.errors import UserError
from components.trainer.kept import Kept
from components.trainer.optimizer import learning, moments_of, rate_after, still_rises
from components.trainer.pieces import Passage

KEY = "training.warm_start.optimizer"
_LEAST_RATE = 1e-6  # below it nothing is learnt

Ways = Mapping[int, tuple[int, Passage]]


def moments_for(model: keras.Model, old: Kept, name: str, ways: Ways) -> list[np.ndarray]:
    """The moments of the old training for the weights of the new model; its rows may be others.

    Args:
        model: compiled.
        old: the old model.
        name: what it is called in messages.
        ways: of the weights that have a row a piece, by identity, the axis of the rows and where
            they come from, if the vocabulary is another one.

    Returns:
        Nothing where none were kept, or where the vocabulary has pieces that the old one has not:
        Adam would know the scale of some rows' gradients and not of others.

    Raises:
        UserError: other weights learn than did; or the schedule has come to its end.
    """
    if not old.moments or any(way.known < len(way.parts) for _, way in ways.values()):
        return []
    found = []
    fresh, weights = moments_of(model.optimizer), 2 * learning(model.optimizer)
    if len(fresh) != len(old.moments):
        raise _of_no_use(name)
    for value, variable, weight in zip(old.moments, fresh, weights, strict=True):
        moved = value
        if id(weight) in ways:
            axis, way = ways[id(weight)]
            if value.ndim != len(variable.shape) or value.shape[axis] < way.before:
                raise _of_no_use(name)
            moved = way.along(axis, value, np.asarray(variable))
        if moved.shape != tuple(variable.shape):
            raise _of_no_use(name)
        found.append(moved)
    rate = rate_after(model.optimizer, old.updates)
    if rate < _LEAST_RATE and not still_rises(model.optimizer, old.updates):
        raise UserError(
            f"the schedule has come to its end with the {old.updates:,} steps of {name}: the "
            f"learning rate would be {rate:.1g}",
            where=KEY,
            remedy="Set it to false, which begins the schedule anew, or give training.schedule an "
            "end that all trainings have before them.",
        )
    return found


def _of_no_use(name: str) -> UserError:
    return UserError(
        f"other weights learn than in the training of {name}, whose optimizer's state is of no use",
        where=KEY,
        remedy="Set it to false: the weights alone are taken over.",
    )
