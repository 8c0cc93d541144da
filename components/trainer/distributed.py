"""Synchronous training on several devices or workers.

Keras's own ``fit`` under ``tf.distribute`` is not an option: its optimizers clip the gradients of
each device before the sum, and cannot accumulate them. Here, every device has a plain model, the
strategy distributes data and sums results, and the optimizer is that of a single device.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from regard.components.trainer.device_group import DeviceGroup, SharedTrainStep, offset_seeds
from regard.models.trainable_model import TrainableModel


class StrategyGroup(DeviceGroup):
    """The devices of a strategy of TensorFlow.

    Args:
        strategy: a ``MirroredStrategy`` or a ``MultiWorkerMirroredStrategy``. No variable is
            created in its scope.
        worker: the index of this process; 0 is the chief.
        workers: the number of processes.
    """

    def __init__(self, strategy: tf.distribute.Strategy, worker: int = 0, workers: int = 1):
        self.strategy = strategy
        self.device_names: Sequence[str] = strategy.extended.worker_devices
        super().__init__(worker, workers, len(self.device_names))

    def run(self, work: Callable[[int], Any]) -> list[Any]:
        """Call ``work`` on every device of this process in parallel, inside a graph.

        Args:
            work: takes the device's number in this process; may call ``all_reduce_sum``.

        Returns:
            The result of each device.
        """

        def run_on_device() -> Any:
            context = tf.distribute.get_replica_context()
            number = tf.get_static_value(context.replica_id_in_sync_group)
            return work(int(number) % self.local_devices)

        return list(self.strategy.experimental_local_results(self.strategy.run(run_on_device)))

    @staticmethod
    def all_reduce_sum(value: tf.Tensor) -> tf.Tensor:
        """The sum of the values of all devices; all of them must call it, within ``run``."""
        context = tf.distribute.get_replica_context()
        # The identity places the value on the device; captured tensors may have no placement.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    def broadcast(self, value: np.ndarray) -> np.ndarray:
        if self.workers == 1:
            return value
        # The sum of the chief's values and the zeros of the others. float64 holds weights and
        # counters exactly.
        flat = np.ravel(value).astype(np.float64)
        flat = self._sum(tf.constant(flat if self.is_chief else np.zeros_like(flat))).numpy()
        return flat.reshape(value.shape).astype(value.dtype)

    def disconnect(self) -> None:
        """Do nothing: the chief does not notice when the others end."""

    @tf.function(reduce_retracing=True, autograph=False)
    def _sum(self, value: tf.Tensor) -> tf.Tensor:
        def work(device: int) -> tf.Tensor:
            return self.all_reduce_sum(value if device == 0 else tf.zeros_like(value))

        return self.run(work)[0]


def local_device_group(devices: str) -> StrategyGroup | None:
    """Return the GPUs of this machine as a group; None for a training on one device.

    Args:
        devices: ``training.devices``, ``one`` or ``all``.
    """
    if devices == "all":
        gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
        if len(gpus) > 1:
            return StrategyGroup(tf.distribute.MirroredStrategy(gpus))
    return None


def connect_workers(worker: int, workers: int) -> StrategyGroup:
    """Wait for the workers that ``TF_CONFIG`` names; call it before any TensorFlow operation.

    Args:
        worker: the index of this process.
        workers: the number of processes.
    """
    implementations = tf.distribute.experimental.CommunicationImplementation
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=implementations.NCCL if has_gpu else implementations.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    return StrategyGroup(strategy, worker, workers)


class DistributedTrainStep(SharedTrainStep):
    """One training step of several devices, equal to one device's step on all of their rows.

    Every device computes on its part of a batch with a copy of the model. The optimizer gets the
    gradient Σ n_d g_d / Σ n_d, where n_d is the number of units (target tokens, or rows) of device
    d, and g_d the gradient of their mean loss: the gradient of the mean over all units, however
    they are divided. It clips, accumulates and checks for overflow after the sum. Floating-point
    variables that are not trained (moving means) change by the weighted mean of the devices'
    changes; frozen weights therefore do not change.

    Args:
        group: the devices.
        model: the compiled model on the first device, which is evaluated and stored.
        build: creates another model of the same architecture.
    """

    group: StrategyGroup

    def __init__(
        self, group: StrategyGroup, model: TrainableModel, build: Callable[[], TrainableModel]
    ):
        self.group, self.model = group, model
        self._build = build
        self.models: list[TrainableModel] = [model]

    def initialize(self) -> None:
        """Copy the chief's state to all devices, with a random seed of its own for each."""
        for variable in (*self.model.variables, *self.model.optimizer.variables):
            variable.assign(self.group.broadcast(variable.numpy()))
        for device in self.group.device_names[1:]:
            with tf.device(device):
                self.models.append(self._build())
                self.models[-1].compile()  # creates the metrics that the first model has
        for number, model in enumerate(self.models):
            for variable, source in zip(model.variables, self.model.variables, strict=True):
                variable.assign(source)
            offset_seeds(model, self.group.sharing.local_parts[number])
        self.model.train_function = self._step

    @tf.function(reduce_retracing=True, autograph=False)
    def _step(self, batches: Any) -> dict[str, tf.Tensor]:
        """Train on the next batch, a tuple with one part per device; called by Keras's ``fit``."""
        parts = next(batches)
        models, metrics = self.models, self.model.metrics_variables
        weights, others = self.model.trainable_weights, non_trainable_weights(self.model)
        metrics_before, others_before = _values(metrics), _values(others)

        def work(device: int) -> tf.Tensor:
            contribution = self.device_contribution(models[device], parts[device])
            return self.group.all_reduce_sum(contribution)

        flat = self.group.run(work)[0]
        shapes = [variable.shape for variable in (*weights, *others, *metrics)]
        total, *values = _unpack(flat, [(), *shapes])
        scale = 1.0 / tf.maximum(total, 1.0)
        gradients = [value * scale for value in values[: len(weights)]]
        changes = [value * scale for value in values[len(weights) : -len(metrics)]]
        for variable, before, change in zip(
            (*others, *metrics),
            (*others_before, *metrics_before),
            (*changes, *values[-len(metrics) :]),
            strict=True,
        ):
            variable.assign(before + change)
        self.model.loss_mean.last_weight = total
        with tf.device(self.group.device_names[0]):
            self.model.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        for model in models[1:]:
            variables = (*model.trainable_weights, *non_trainable_weights(model))
            for variable, source in zip(variables, (*weights, *others), strict=True):
                variable.assign(source)
        return self.model.get_metrics_result()

    def device_contribution(self, model: TrainableModel, inputs: Any) -> tf.Tensor:
        """Pack one device's unit count, weighted gradients, changes and metric sums in a vector."""
        count, gradients, changes, sums = self._compute_gradients(model, inputs)
        weighted = [count * value for value in (*gradients, *changes)]
        return tf.concat([tf.reshape(v, [-1]) for v in (count, *weighted, *sums)], axis=0)

    def _compute_gradients(self, model: TrainableModel, inputs: Any) -> Any:
        def compute(inputs: Any) -> Any:
            before = _values(non_trainable_weights(model))
            for metric in model.metrics:
                metric.reset_state()
            with tf.GradientTape() as tape:
                outputs = model(inputs, training=True)
                loss = model.compute_loss(x=inputs, y_pred=outputs, training=True)
                loss = self.model.optimizer.scale_loss(loss)
            weights = [weight.value for weight in model.trainable_weights]
            gradients = tape.gradient(loss, weights, unconnected_gradients="zero")
            after = _values(non_trainable_weights(model))
            return (
                tf.identity(model.loss_mean.count.value),
                [tf.convert_to_tensor(gradient) for gradient in gradients],
                [new - old for new, old in zip(after, before, strict=True)],
                _values(model.metrics_variables),
            )

        compiled = tf.function(compute, jit_compile=True) if self.model.jit_compile else compute
        return compiled(inputs)


def non_trainable_weights(model: TrainableModel) -> list[Any]:
    """The floating-point weights that the optimizer does not train."""
    return [w for w in model.non_trainable_weights if w.dtype.startswith("float")]


def _values(variables: Sequence[Any]) -> list[tf.Tensor]:
    """The present values, unaffected by later assignments."""
    return [tf.identity(variable.value) for variable in variables]


def _unpack(flat: tf.Tensor, shapes: Sequence[Sequence[int]]) -> list[tf.Tensor]:
    """Split a vector of ``device_contribution`` into tensors of these shapes."""
    sizes = [int(tf.TensorShape(shape).num_elements()) for shape in shapes]
    parts = zip(tf.split(flat, sizes), shapes, strict=True)
    return [tf.reshape(part, shape) for part, shape in parts]
