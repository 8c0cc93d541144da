"""Train a model, as the chief or as another worker: build it, initialize its weights and fit it."""

import dataclasses
import functools
from collections.abc import Mapping

from regard.components.settings.trainer import NODE, TrainerConfig, TrainingData
from regard.components.trainer import fine_tuning, pretrained_embeddings, warm_start
from regard.components.trainer.batch_search import find_batch_tokens
from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import Checkpoints, NoCheckpoints, TrainState
from regard.components.trainer.checkpoint_folder import report_other_checkpoints
from regard.components.trainer.distributed import DeviceGroup, DistributedTrainStep
from regard.components.trainer.optimizer import compile_model, resolve_precision
from regard.components.trainer.training_inputs import TrainingInputs, read_inputs
from regard.components.trainer.training_loop import fit, set_seed
from regard.components.trainer.validation import LOSS, metric_function
from regard.core import events
from regard.models.tasks.network import Network
from regard.models.trainable_model import TrainableModel


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The result of the chief: a model with its best weights, and facts about its training.

    Attributes:
        config: with the precision of this machine.
        network: what the task trains.
        model: ready for export.
        state: the final state of the training.
        eval_batches: the eval split.
        sentencepiece_models: the serialized tokenizer of each text feature.
        record: the part of ``training.json`` that is known before the training: sizes of the
            vocabularies and the batches, rows of the splits, pretrained embeddings and warm start.
    """

    config: TrainerConfig
    network: Network
    model: TrainableModel
    state: TrainState
    eval_batches: Batches
    sentencepiece_models: Mapping[str, bytes]
    record: Mapping[str, object]


@dataclasses.dataclass(frozen=True)
class WorkerResult:
    """The result of a worker that is not the chief. Only the chief's model has the best weights.

    Attributes:
        state: the final state of the training.
    """

    state: TrainState


def train(
    config: TrainerConfig,
    data: TrainingData,
    log_dir: str,
    group: DeviceGroup | None = None,
    objective: str = LOSS,
) -> TrainingResult | WorkerResult:
    """Build the model and train it, or resume from its checkpoints.

    Args:
        config: the configuration.
        data: the rows.
        log_dir: for TensorBoard.
        group: the devices that train together; None for a single device.
        objective: a metric to evaluate in addition to what ``config`` requires.

    Returns:
        A ``TrainingResult`` in the chief, and so without a group; otherwise a ``WorkerResult``.

    Raises:
        UserError: a split has no usable row.
    """
    config = resolve_precision(config)
    set_seed(config.training)
    inputs = read_inputs(config, data, group)
    if group is None or group.is_chief:
        return _train_as_chief(config, inputs, log_dir, group, objective)
    return _train_as_worker(config, inputs, log_dir, group)


def _train_as_chief(
    config: TrainerConfig,
    inputs: TrainingInputs,
    log_dir: str,
    group: DeviceGroup | None,
    objective: str,
) -> TrainingResult:
    """Train the model, evaluate it, and write its checkpoints."""
    build = functools.partial(_build_model, config, inputs)
    model = build()
    pretrained = _load_pretrained(model, config, inputs)
    compile_model(model, config.training)
    checkpoints = Checkpoints(config.checkpoint_folder)
    start = _initialize_weights(model, config, inputs, checkpoints)
    if config.training.batch_tokens == "auto":
        inputs = inputs.with_batch_tokens(find_batch_tokens(model, inputs.train, checkpoints))
    compute_metrics = metric_function(
        inputs.eval, config, inputs.processors, inputs.vocabulary_sizes, objective
    )
    train_step = None
    if group is not None:
        train_step = DistributedTrainStep(group, model, build)
        _report_group(group)
    state = fit(
        model,
        inputs.train,
        inputs.eval,
        config.training,
        checkpoints,
        log_dir,
        compute_metrics,
        train_step,
    )
    return TrainingResult(
        config=config,
        network=inputs.network,
        model=model,
        state=state,
        eval_batches=inputs.eval,
        sentencepiece_models=inputs.sentencepiece_models,
        record={
            "vocabulary_sizes": inputs.vocabulary_sizes,
            "rows": inputs.rows,
            "batch_tokens": inputs.train.batch_tokens,
            "pretrained": pretrained,
            "warm_start": start,
        },
    )


def _train_as_worker(
    config: TrainerConfig, inputs: TrainingInputs, log_dir: str, group: DeviceGroup
) -> WorkerResult:
    """Train with the chief, whose weights and state this worker receives; write nothing."""
    build = functools.partial(_build_model, config, inputs)
    model = build()
    compile_model(model, config.training)
    checkpoints = NoCheckpoints(config.checkpoint_folder)
    if config.training.batch_tokens == "auto":
        inputs = inputs.with_batch_tokens(find_batch_tokens(model, inputs.train, checkpoints))
    train_step = DistributedTrainStep(group, model, build)
    state = fit(
        model,
        inputs.train,
        inputs.eval,
        config.training,
        checkpoints,
        log_dir,
        train_step=train_step,
    )
    return WorkerResult(state)


def _build_model(config: TrainerConfig, inputs: TrainingInputs) -> TrainableModel:
    """Build the model, with the weights that are frozen."""
    network = inputs.network
    model = network.build(config.model, config.training, inputs.vocabulary_sizes)
    if pretrained := getattr(config.model, "pretrained", None):
        pretrained_embeddings.set_trainable(model, network, pretrained)
    fine_tuning.set_trainable(model, network, config.training)
    return model


def _load_pretrained(
    model: TrainableModel, config: TrainerConfig, inputs: TrainingInputs
) -> Mapping[str, object]:
    """Load pretrained embeddings, and return facts about them; empty without any."""
    pretrained = getattr(config.model, "pretrained", None)
    if not pretrained:
        return {}
    return pretrained_embeddings.load(model, inputs.network, pretrained, inputs.processors)


def _initialize_weights(
    model: TrainableModel, config: TrainerConfig, inputs: TrainingInputs, checkpoints: Checkpoints
) -> Mapping[str, object]:
    """Start from the model of a warm start, and return facts about it; empty without one."""
    report_other_checkpoints(config.checkpoint_folder)
    checkpoints.create_folder()
    serialized, network = inputs.sentencepiece_models, inputs.network
    warm_start.check_ensemble(config, serialized)
    start = warm_start.initialize_weights(model, network, config, serialized, checkpoints)
    fine_tuning.report_trained_weights(model, network, config.training, start)
    return start


def _report_group(group: DeviceGroup) -> None:
    members = f"{group.workers} workers" if group.workers > 1 else f"{group.size} devices"
    text = f"{members} train together; each gets a part of every batch"
    events.emit("note", node=NODE, text=text)
