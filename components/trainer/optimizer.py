"""Adam with fused updates, and the number format of the computation."""

from typing import Any

import keras
import tensorflow as tf

from regard.components.settings.trainer import NODE, TrainerConfig
from regard.components.trainer.fine_tuning import LowRankAdapters
from regard.core import events
from regard.core.processor import describe_slow_precision, read_features
from regard.models.schedules import schedule
from regard.models.settings.training import TrainingConfig
from regard.models.trainable_model import LossMean, TrainableModel

# Weight decay harms offsets, the scales of normalizations, and the temperature of a cosine.
_NOT_DECAYED = ["bias", "gamma", "beta", "temperature"]
# NVIDIA's compute capabilities from which tensor cores support a format: Ampere and Volta.
_FORMATS = {(8, 0): "mixed_bfloat16", (7, 0): "mixed_float16"}


class _FusedUpdate:
    """Updates a weight in one pass, with Keras's formulas, with and without weight decay.

    Keras's dozen operations, each over all weights, took an eighth of the step of a small
    Transformer on a CPU (benchmarks/training.md). Keras weighs accumulated batches equally; here
    they weigh by their units, so that an update equals that of the joint batch.

    Attributes:
        loss: the running mean of the loss of the model, which counts the units of a batch.
        adapters: what is trained in place of the kernels; None: the weights themselves.
    """

    loss: LossMean
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
            units = tf.cast(self.loss.last_weight, tf.float32)
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
        optimizer.exclude_from_weight_decay(var_names=_NOT_DECAYED)
    else:
        optimizer = Adam(**options)
    optimizer.loss = model.plain_loss
    if training.lora:
        optimizer.adapters = LowRankAdapters(training.lora)
    model.compile(optimizer=optimizer, jit_compile=training.jit_compile)
    model.optimizer.build(model.trainable_variables)


def resolve_precision(config: TrainerConfig) -> TrainerConfig:
    """Replace the precision ``auto`` by the fast format of this machine's GPUs.

    Report another one that is slow on this machine.

    A training in a mixed format gets a checkpoint folder of its own, since its state differs: in
    float16, there is the scale of the loss.
    """
    capabilities = _gpu_capabilities()
    if config.training.precision != "auto":
        text = describe_slow_precision(config.training.precision, read_features())
        if text and not capabilities:
            events.emit("note", node=NODE, text=text)
        return config
    precision = fast_precision(capabilities)
    key = config.checkpoint_key
    if precision != "float32":
        key = f"{key}-{precision}"
        events.emit("note", node=NODE, text=f"training.precision: auto is {precision} on this GPU")
    training = config.training.model_copy(update={"precision": precision})
    return config.model_copy(update={"training": training, "checkpoint_key": key})


def fast_precision(capabilities: list[tuple[int, int]]) -> str:
    """The format that is fast on all GPUs of these compute capabilities; float32 without GPUs."""
    if capabilities:
        for capability, name in _FORMATS.items():
            if min(capabilities) >= capability:
                return name
    return "float32"


def _gpu_capabilities() -> list[tuple[int, int]]:
    gpus = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, gpus)
    return [gpu.get("compute_capability", (0, 0)) for gpu in details]
