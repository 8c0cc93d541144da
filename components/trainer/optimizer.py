"""Adam with fused updates, and the compilation of a model with it."""

from typing import Any

import keras
import tensorflow as tf

from regard.components.trainer.fine_tuning import LowRankAdapters
from regard.models.schedules import schedule
from regard.models.settings.training import TrainingConfig
from regard.models.trainable_model import LossMean, TrainableModel


class _FusedUpdate:
    """Updates a weight in one pass, with Keras's formulas, with and without weight decay.

    Keras's dozen operations, each over all weights, took 8% of the time of a step on a CPU; the
    fused update made a training 1.07 to 1.23 times as fast (benchmarks/optimization_log.md). Keras
    weighs accumulated batches equally; here they weigh by their units, so that an update equals
    that of the joint batch.

    Attributes:
        loss_mean: the model's running mean of the loss, which knows the units of the last batch.
        adapters: what is trained in place of the kernels; None: the weights themselves.
    """

    loss_mean: LossMean
    adapters: LowRankAdapters | None = None
    gradient_accumulation_steps: int | None

    def build(self, variables: list[Any]) -> None:
        """Create the moments, and the number of units of the accumulated batches."""
        adam: Any = super()
        adam.build(self.adapters.create(self, variables) if self.adapters else variables)
        if self.gradient_accumulation_steps:
            self._units = adam.add_variable((), name="accumulated_units")

    def apply(self, grads: list[Any], trainable_variables: Any = None) -> None:
        """Update the weights, or accumulate the gradients."""
        adam: Any = super()
        if self.adapters:
            grads, trainable_variables = self.adapters.gradients(grads), None
        if self.gradient_accumulation_steps:
            units = tf.cast(self.loss_mean.last_weight, tf.float32)
            self._units.assign_add(units)
            grads = [None if g is None else units * tf.convert_to_tensor(g) for g in grads]
        adam.apply(grads, trainable_variables)
        if self.adapters:
            self.adapters.merge()

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one weight and its moments."""
        adam: Any = self
        index = adam._get_variable_index(variable)
        dtype = tf.as_dtype(variable.dtype)
        beta_1, beta_2 = (tf.constant(beta, dtype) for beta in (adam.beta_1, adam.beta_2))
        steps = tf.cast(adam.iterations, dtype) + 1
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(adam._momentums[index]),
            v=_handle(adam._velocities[index]),
            beta1_power=tf.pow(beta_1, steps),
            beta2_power=tf.pow(beta_2, steps),
            lr=tf.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.constant(adam.epsilon, dtype),
            grad=tf.cast(tf.convert_to_tensor(gradient), dtype),
        )

    def _clip_gradients(self, grads: list[Any]) -> list[Any]:
        """Scale the gradients down if their global norm exceeds the limit; called once per update.

        Accumulated gradients are divided by their units first: so far they are the sum of the
        weighted gradients divided by the number of batches.
        """
        if self.gradient_accumulation_steps:
            scale = self.gradient_accumulation_steps / tf.maximum(self._units, 1.0)
            grads = [None if grad is None else scale * grad for grad in grads]
            self._units.assign(0.0)
        limit = getattr(self, "global_clipnorm", None)
        if not limit:
            return grads
        # Dense tensors: the norm of an embedding's sparse gradient ignores that lookups add up.
        dense = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
        return tf.clip_by_global_norm(dense, limit)[0]


class Adam(_FusedUpdate, keras.optimizers.Adam):
    """Kingma & Ba 2015, "Adam: A Method for Stochastic Optimization".

    Algorithm 1 in the order of operations at the end of section 2, whose epsilon is added to √v
    before the correction of the bias: θ ← θ - α √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε).
    """


class AdamW(_FusedUpdate, keras.optimizers.AdamW):
    """Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", Algorithm 2.

    The decay is scaled by the learning rate, as in Keras and PyTorch: θ ← θ - α λ θ. In the paper
    it is scaled only by the multiplier η of the schedule.
    """


def _handle(variable: Any) -> Any:
    """The resource handle of a Keras or TensorFlow variable."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle


def compile_model(model: TrainableModel, training: TrainingConfig) -> None:
    """Compile the model with Adam, or with AdamW if there is weight decay.

    With ``gradient_accumulation_steps`` the weights change once per that many batches, by the
    gradient of the mean loss of all their units; ``clip_norm`` limits its norm. Kingma & Ba 2015;
    Loshchilov & Hutter 2019.
    """
    accumulate = training.gradient_accumulation_steps
    options = {
        "learning_rate": schedule(
            training.learning_rate,
            training.schedule.model_dump(mode="json"),
            accumulate,
            training.max_steps,
        ),
        "beta_1": training.beta_1,
        "beta_2": training.beta_2,
        "epsilon": training.epsilon,
        "global_clipnorm": training.clip_norm,
        "gradient_accumulation_steps": accumulate if accumulate > 1 else None,
    }
    if training.weight_decay:
        optimizer = AdamW(weight_decay=training.weight_decay, **options)
        optimizer.exclude_from_weight_decay(var_list=model.undecayed_weights())
    else:
        optimizer = Adam(**options)
    optimizer.loss_mean = model.loss_mean
    if training.lora:
        optimizer.adapters = LowRankAdapters(training.lora)
    model.compile(optimizer=optimizer, jit_compile=training.jit_compile)
    model.optimizer.build(model.trainable_variables)
