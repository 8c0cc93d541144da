"""The compilation of a model with its optimizer."""

from typing import Any

from regard.components.trainer.backends import current_backend
from regard.components.trainer.fine_tuning import LowRankAdapters
from regard.models.schedules import schedule
from regard.models.settings.training import TrainingConfig
from regard.models.trainable_model import TrainableModel


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
        optimizer.exclude_from_weight_decay(var_list=model.undecayed_weights())
    else:
        optimizer = backend.adam()(**options)
    optimizer.loss_mean = model.loss_mean
    if training.lora:
        optimizer.adapters = LowRankAdapters(training.lora)
    compiles = training.jit_compile or backend.always_compiles
    model.compile(optimizer=optimizer, jit_compile=compiles)
    model.optimizer.build(model.trainable_variables)
    backend.prepare(model)
