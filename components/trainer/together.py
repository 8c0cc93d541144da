"""One step of several devices: the same as one device's step on all of their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from components.trainer.team import Team
from models.trained import TrainedModel

# How many numbers are handed on at once: 64 MiB of weights.
PIECE = 1 << 24


class Together:
    """Trains a model on the devices of a team.

    Every device computes on its part of a batch with a copy of the model. The gradient that the
    optimizer gets is Σ n_d g_d / Σ n_d, where n_d is the number of units (target pieces, or rows)
    of device d and g_d the gradient of their mean loss: that of the mean over all units, however
    they are spread. It gets it before it clips, accumulates or looks for what overflowed. Weights
    that are moved instead of trained (moving means) move by the mean of the devices' changes, and
    frozen ones therefore not at all.

    Args:
        team: the devices.
        model: compiled; on the first device, and the one that is evaluated and stored.
        build: makes another one like it.
    """

    def __init__(self, team: Team, model: TrainedModel, build: Callable[[], TrainedModel]):
        self.team, self.model = team, model
        self._build = build
        self.models: list[TrainedModel] = [model]

    def begin(self) -> None:
        """Gives all devices the chief's state, and every one its own random numbers."""
        state = [*self.model.variables, *self.model.optimizer.variables]
        for some in _pieces(state):
            values = self.team.from_chief([variable.numpy() for variable in some])
            for variable, value in zip(some, values, strict=True):
                variable.assign(value)
        for device in self.team.names[1:]:
            with tf.device(device):
                self.models.append(self._build())
                self.models[-1].compile()  # for the same metrics as the first one's
        for number, model in enumerate(self.models):
            for own, first in zip(model.variables, self.model.variables, strict=True):
                own.assign(first)
            _reseed(model, self.team.number(number))
        self.model.train_function = self._step

    @tf.function(reduce_retracing=True, autograph=False)
    def _step(self, batches: Any) -> dict[str, tf.Tensor]:
        """Takes the next batch, in parts, one a device; what Keras's ``fit`` calls."""
        parts = next(batches)
        models, metrics = self.models, self.model.metrics_variables
        moved = _moved(self.model)
        before, stood = _values(metrics), _values(moved)

        def work(device: int) -> tf.Tensor:
            return self.team.summed(self._found(models[device], parts[device]))

        found = self.team.each(work)[0]
        weights = self.model.trainable_weights
        shapes = [variable.shape for variable in (*weights, *moved, *metrics)]
        total, *values = _split(found, [(), *shapes])
        share = 1.0 / tf.maximum(total, 1.0)
        gradients = [value * share for value in values[: len(weights)]]
        changes = [value * share for value in values[len(weights) : -len(metrics)]]
        for variable, old, change in zip(
            (*moved, *metrics),
            (*stood, *before),
            (*changes, *values[-len(metrics) :]),
            strict=True,
        ):
            variable.assign(old + change)
        with tf.device(self.team.names[0]):
            self.model.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        for model in models[1:]:
            for own, first in zip(
                (*model.trainable_weights, *_moved(model)), (*weights, *moved), strict=True
            ):
                own.assign(first)
        return self.model.get_metrics_result()

    def _found(self, model: TrainedModel, inputs: Any) -> tf.Tensor:
        """All that the other devices have to know of this one's part, in one vector."""
        count, gradients, changes, sums = self._gradients(model, inputs)
        weighted = [count * value for value in (*gradients, *changes)]
        return tf.concat([tf.reshape(v, [-1]) for v in (count, *weighted, *sums)], axis=0)

    def _gradients(self, model: TrainedModel, inputs: Any) -> Any:
        def compute(inputs: Any) -> Any:
            stood = _values(_moved(model))
            for metric in model.metrics:
                metric.reset_state()
            with tf.GradientTape() as tape:
                outputs = model(inputs, training=True)
                loss = model.compute_loss(x=inputs, y_pred=outputs, training=True)
                loss = self.model.optimizer.scale_loss(loss)
            weights = [weight.value for weight in model.trainable_weights]
            found = tape.gradient(loss, weights, unconnected_gradients="zero")
            return (
                tf.identity(model.plain_loss.count.value),
                [tf.convert_to_tensor(gradient) for gradient in found],
                [new - old for new, old in zip(_values(_moved(model)), stood, strict=True)],
                _values(model.metrics_variables),
            )

        compiled = tf.function(compute, jit_compile=True) if self.model.jit_compile else compute
        return compiled(inputs)


def _pieces(variables: Sequence[Any]) -> Iterator[list[Any]]:
    """The variables in lists of at most ``PIECE`` numbers, or of one variable."""
    some: list[Any] = []
    left = PIECE
    for variable in variables:
        size = math.prod(variable.shape)
        if some and size > left:
            yield some
            some, left = [], PIECE
        some.append(variable)
        left -= size
    yield some


def _moved(model: TrainedModel) -> list[Any]:
    return [w for w in model.non_trainable_weights if w.dtype.startswith("float")]


def _values(variables: Sequence[Any]) -> list[tf.Tensor]:
    """What they are now, whatever becomes of them."""
    return [tf.identity(variable.value) for variable in variables]


def _split(flat: tf.Tensor, shapes: Sequence[Sequence[int]]) -> list[tf.Tensor]:
    """Takes apart what ``_found`` has put together."""
    sizes = [int(tf.TensorShape(shape).num_elements()) for shape in shapes]
    parts = zip(tf.split(flat, sizes), shapes, strict=True)
    return [tf.reshape(part, shape) for part, shape in parts]


def _reseed(model: TrainedModel, number: int) -> None:
    """Gives device ``number`` random numbers of its own, the same after a resume."""
    for variable in model.variables:
        if variable.name == "seed_generator_state":  # a seed, and a counter that all share
            state = variable.numpy()
            state[0] += number
            variable.assign(state)
