"""The optimizer of a model, and the number format of the computation."""

from collections.abc import Sequence
from typing import Any

from regard.components.settings.trainer import NODE, TrainerConfig
from regard.components.trainer.backends import current_backend
from regard.components.trainer.fine_tuning import LowRankAdapters
from regard.core import events
from regard.core.processor import describe_slow_precision, read_features
from regard.models.schedules import schedule
from regard.models.settings.training import TrainingConfig
from regard.models.trainable_model import TrainableModel

# Weight decay harms offsets, the scales of normalizations, and the temperature of a cosine.
_NOT_DECAYED = ["bias", "gamma", "beta", "temperature"]
# NVIDIA's compute capabilities from which tensor cores support a format: Ampere and Volta.
_FORMATS = {(8, 0): "mixed_bfloat16", (7, 0): "mixed_float16"}


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
    backend = current_backend()
    optimizer: Any
    if training.weight_decay:
        optimizer = backend.adam(decoupled=True)(weight_decay=training.weight_decay, **options)
        optimizer.exclude_from_weight_decay(var_names=_NOT_DECAYED)
    else:
        optimizer = backend.adam()(**options)
    optimizer.loss = model.plain_loss
    if training.lora:
        optimizer.adapters = LowRankAdapters(training.lora)
    compiles = training.jit_compile or backend.always_compiles
    model.compile(optimizer=optimizer, jit_compile=compiles)
    model.optimizer.build(model.trainable_variables)
    backend.prepare(model)


def resolve_precision(config: TrainerConfig) -> TrainerConfig:
    """Replace the precision ``auto`` by the fast format of this machine's GPUs.

    Report another one that is slow on this machine.

    A training in a mixed format gets a checkpoint folder of its own, since its state differs: in
    float16, there is the scale of the loss.
    """
    capabilities = current_backend().compute_capabilities()
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


def fast_precision(capabilities: Sequence[tuple[int, int]]) -> str:
    """The format that is fast on all GPUs of these compute capabilities; float32 without GPUs."""
    if capabilities:
        for capability, name in _FORMATS.items():
            if min(capabilities) >= capability:
                return name
    return "float32"
