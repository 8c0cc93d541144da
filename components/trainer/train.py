"""Train a model, as the chief or as another worker: build it, initialize its weights and fit it."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

from regard.components.settings.trainer import NODE, TrainerConfig, TrainingJob
from regard.components.trainer import fine_tuning, pretrained_embeddings, warm_start
from regard.components.trainer.backends import current_backend
from regard.components.trainer.batch_search import find_batch_tokens
from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import Checkpoints, NoCheckpoints, TrainState
from regard.components.trainer.device_group import DeviceGroup
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.other_checkpoints import report_other_checkpoints
from regard.components.trainer.precision import resolve_precision
from regard.components.trainer.training_inputs import TrainingInputs, read_inputs
from regard.components.trainer.training_loop import fit, set_seed
from regard.components.trainer.validation import LOSS, MetricFn, metric_function
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint
from regard.core import events
from regard.core.errors import UserError
from regard.models.tasks.network import Network
from regard.models.trainable_model import TrainableModel

# Returns the model that a training starts from.
StartFn = Callable[[TrainingJob], WarmStartCheckpoint | None]


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The result of the chief: a model with its best weights, and facts about its training.

    Attributes:
        job: the training, with the precision of this machine.
        network: what the task trains.
        model: the trained model, ready for export.
        state: the final state of the training.
        eval_batches: the batches of the eval split.
        sentencepiece_models: the serialized tokenizer of each text feature.
        devices: the number of devices that have trained.
        record: the part of ``training.json`` that is known before the training: sizes of the
            vocabularies and the batches, rows of the splits, pretrained embeddings and warm start.
    """

    job: TrainingJob
    network: Network
    model: TrainableModel
    state: TrainState
    eval_batches: Batches
    sentencepiece_models: Mapping[str, bytes]
    devices: int
    record: Mapping[str, object]


@dataclasses.dataclass(frozen=True)
class WorkerResult:
    """The result of a worker that is not the chief. Only the chief's model has the best weights.

    Attributes:
        state: the final state of the training.
    """

    state: TrainState


def train(
    job: TrainingJob,
    group: DeviceGroup | None = None,
    objective: str = LOSS,
    start: StartFn | None = None,
) -> TrainingResult | WorkerResult:
    """Build the model and train it, or resume from its checkpoints; export nothing.

    Args:
        job: what to train.
        group: the devices that train together; None for a single device.
        objective: a metric to evaluate in addition to what the settings require.
        start: returns the model to start from, given the job with its final folder of checkpoints,
            see ``read_start``; only the chief calls it. None for random weights.

    Returns:
        A ``TrainingResult`` in the chief, and so without a group; otherwise a ``WorkerResult``.

    Raises:
        UserError: a split has no usable row.
    """
    job = resolve_precision(job)
    current_backend().use_devices(job.config.training.devices)
    set_seed(job.config.training)
    inputs = read_inputs(job.config, job.data, group)
    model = build_model(job.config, inputs)
    compile_model(model, job.config.training)
    if group is None or group.is_chief:
        return _train_as_chief(job, model, inputs, group, objective, start(job) if start else None)
    return _train_as_worker(job, model, inputs, group)


def _train_as_chief(
    job: TrainingJob,
    model: TrainableModel,
    inputs: TrainingInputs,
    group: DeviceGroup | None,
    objective: str,
    start: WarmStartCheckpoint | None,
) -> TrainingResult:
    """Initialize the model, train it, evaluate it, and write its checkpoints."""
    checkpoints = Checkpoints(job.run.checkpoint_folder)
    initialization = _initialize_weights(model, job, inputs, start, checkpoints)
    inputs = _with_batch_tokens(inputs, model, job.config, checkpoints)
    compute_metrics = metric_function(
        inputs.eval, job.config, inputs.processors, inputs.vocabulary_sizes, objective
    )
    _report_devices(group)
    state = _fit(job, model, inputs, checkpoints, group, compute_metrics)
    return TrainingResult(
        job=job,
        network=inputs.network,
        model=model,
        state=state,
        eval_batches=inputs.eval,
        sentencepiece_models=inputs.sentencepiece_models,
        devices=group.size if group else current_backend().devices,
        record={
            "vocabulary_sizes": inputs.vocabulary_sizes,
            "rows": inputs.rows,
            "batch_tokens": inputs.train.batch_tokens,
            **initialization,
        },
    )


def _train_as_worker(
    job: TrainingJob, model: TrainableModel, inputs: TrainingInputs, group: DeviceGroup
) -> WorkerResult:
    """Train with the chief, whose weights and state this worker receives; write nothing."""
    checkpoints = NoCheckpoints(job.run.checkpoint_folder)
    inputs = _with_batch_tokens(inputs, model, job.config, checkpoints)
    return WorkerResult(_fit(job, model, inputs, checkpoints, group))


def _fit(
    job: TrainingJob,
    model: TrainableModel,
    inputs: TrainingInputs,
    checkpoints: Checkpoints,
    group: DeviceGroup | None,
    compute_metrics: MetricFn | None = None,
) -> TrainState:
    """Run the training loop on one device, or on those of the group."""
    train_step = None
    if group is not None:
        build = functools.partial(build_model, job.config, inputs)
        train_step = current_backend().shared_step(group, model, build)
    try:
        state = fit(
            model,
            inputs.train,
            inputs.eval,
            job.config.training,
            checkpoints,
            job.run_folder,
            compute_metrics,
            train_step,
        )
    except Exception as error:
        if not current_backend().is_out_of_memory(error):
            raise
        raise UserError(
            f"The memory of the device does not hold a batch of {inputs.train.batch_tokens:,} "
            "tokens.",
            where="training.batch_tokens",
            remedy="Use a smaller number, or auto. With gradient_accumulation_steps, several "
            "batches make an update.",
        ) from error
    if group is not None:
        group.disconnect()
    return state


def build_model(config: TrainerConfig, inputs: TrainingInputs) -> TrainableModel:
    """Build the model, with the weights that are frozen."""
    network = inputs.network
    model = network.build(config.model, config.training, inputs.vocabulary_sizes)
    if pretrained := getattr(config.model, "pretrained", None):
        pretrained_embeddings.set_trainable(model, network, pretrained)
    fine_tuning.set_trainable(model, network, config.training)
    return model


def _initialize_weights(
    model: TrainableModel,
    job: TrainingJob,
    inputs: TrainingInputs,
    start: WarmStartCheckpoint | None,
    checkpoints: Checkpoints,
) -> dict[str, Mapping[str, object]]:
    """Load pretrained embeddings and the model of a warm start.

    Returns:
        Facts about both, under ``pretrained`` and ``warm_start``; empty without them.
    """
    config, network, serialized = job.config, inputs.network, inputs.sentencepiece_models
    pretrained: Mapping[str, object] = {}
    if section := getattr(config.model, "pretrained", None):
        pretrained = pretrained_embeddings.load(model, network, section, inputs.processors)
    report_other_checkpoints(job.run.checkpoint_folder)
    checkpoints.create_folder()
    report = warm_start.initialize_weights(model, network, config, start, serialized, checkpoints)
    fine_tuning.report_trained_weights(model, network, config.training, report)
    return {"pretrained": pretrained, "warm_start": report}


def _with_batch_tokens(
    inputs: TrainingInputs, model: TrainableModel, config: TrainerConfig, checkpoints: Checkpoints
) -> TrainingInputs:
    """Return the inputs in batches of the size that ``batch_tokens: auto`` finds."""
    if config.training.batch_tokens != "auto":
        return inputs
    return inputs.with_batch_tokens(find_batch_tokens(model, inputs.train, checkpoints))


def _report_devices(group: DeviceGroup | None) -> None:
    """Report how many devices or workers share the batches, if there are several."""
    devices = group.size if group else current_backend().devices
    members = f"{group.workers} workers" if group and group.workers > 1 else f"{devices} devices"
    if group is not None or devices > 1:
        text = f"{members} train together; each gets a part of every batch"
        events.emit("note", node=NODE, text=text)
