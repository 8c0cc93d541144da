"""``run_fn``, which TFX's Trainer calls: train a model and export it.

``python -m regard.components.trainer.run_fn`` is the process of one worker of a distributed
training, which ``distributed_worker`` starts.
"""

import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from regard.components.common.code_digest import code_digest
from regard.components.settings.trainer import NODE, TrainerConfig, TrainingData, TrainingJob
from regard.components.trainer import (
    distributed_worker,
    fine_tuning,
    pretrained_embeddings,
    warm_start,
)
from regard.components.trainer.batch_search import find_batch_tokens
from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import (
    Checkpoints,
    NoCheckpoints,
    TrainState,
    checkpoint_lock,
)
from regard.components.trainer.checkpoint_folder import (
    report_other_checkpoints,
    with_checkpoint_key,
    with_default_folder,
)
from regard.components.trainer.distributed import (
    DeviceGroup,
    DistributedTrainStep,
    connect_workers,
    local_device_group,
)
from regard.components.trainer.export import (
    export,
    read_sentencepiece_models,
    read_tokenizers,
    write_warm_start,
)
from regard.components.trainer.optimizer import compile_model, resolve_precision
from regard.components.trainer.subword_sampling import SubwordSampling
from regard.components.trainer.training_key import training_data
from regard.components.trainer.training_loop import fit, set_seed
from regard.components.trainer.validation import LOSS, metric_function
from regard.core import events
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.models import tasks
from regard.models.tasks.network import Network
from regard.models.trainable_model import TrainableModel

# Rows whose outputs the serving check compares with those of the exported model.
_REFERENCE_ROWS = 8
_CONNECTION_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """A model with its best weights, and facts about its training.

    Attributes:
        config: with the precision of this machine.
        network: what the task trains.
        model: ready for export.
        state: the final state of the training.
        eval_batches: the eval split.
        tokenizers: one per text feature.
        sentencepiece_models: the same, serialized.
        record: the part of ``training.json`` that is known before the training: sizes of the
            vocabularies and the batches, rows of the splits, pretrained embeddings and warm start.
    """

    config: TrainerConfig
    network: Network
    model: TrainableModel
    state: TrainState
    eval_batches: Batches
    tokenizers: Mapping[str, Any]
    sentencepiece_models: Mapping[str, bytes]
    record: Mapping[str, object]


def train(
    config: TrainerConfig,
    data: TrainingData,
    log_dir: str,
    group: DeviceGroup | None = None,
    objective: str = LOSS,
) -> TrainingResult | None:
    """Build the model and train it, or resume from its checkpoints.

    Args:
        config: the configuration.
        data: the rows.
        log_dir: for TensorBoard.
        group: the devices that train together; None for a single device.
        objective: a metric to evaluate in addition to what ``config`` requires.

    Returns:
        The result; None in a worker that is not the chief.

    Raises:
        UserError: a split has no usable row.
    """
    config = resolve_precision(config)
    training = config.training
    network = tasks.get_network(config.task)
    set_seed(training)

    features, folder = network.description.text_features, f"{data.transform_graph}/tokenizer"
    tokenizers = read_tokenizers(folder, features)
    serialized = read_sentencepiece_models(folder, features)
    sizes = {name: int(t.vocab_size().numpy()) for name, t in tokenizers.items()}
    sampling = None
    if training.subword_sampling:
        alpha = training.subword_sampling.alpha
        sampling = SubwordSampling(serialized, alpha, training.max_length, training.seed)
    train_batches, eval_batches = (
        Batches(
            files,
            network,
            batch_tokens=0 if training.batch_tokens == "auto" else training.batch_tokens,
            max_length=training.max_length,
            seed=training.seed,
            fixed_shapes=training.jit_compile,
            sharing=sharing,
            sampling=sampler,
            tag_temperature=temperature,
        )
        for files, sharing, sampler, temperature in (
            (data.train_files, group.sharing if group else None, sampling, config.tag_temperature),
            (data.eval_files, None, None, 1.0),
        )
    )
    rows = {"train": train_batches.count(), "eval": eval_batches.count()}
    for split, counts in rows.items():
        _check_rows(split, counts, training.max_length)
    if train_batches.tag_sampling:
        _report_tags(train_batches, tokenizers[features[0]])

    pretrained_config = getattr(config.model, "pretrained", None)

    def build() -> TrainableModel:
        model = network.build(config.model, training, sizes)
        if pretrained_config:
            pretrained_embeddings.set_trainable(model, network, pretrained_config)
        fine_tuning.set_trainable(model, network, training)
        return model

    is_chief = group is None or group.is_chief
    model = build()
    pretrained, start, compute_metrics = {}, {}, None
    if is_chief and pretrained_config:
        pretrained = pretrained_embeddings.load(model, network, pretrained_config, tokenizers)
    compile_model(model, training)
    checkpoints = (Checkpoints if is_chief else NoCheckpoints)(config.checkpoint_folder)
    if is_chief:
        report_other_checkpoints(config.checkpoint_folder)
        checkpoints.create_folder()
        warm_start.check_ensemble(config, serialized)
        start = warm_start.initialize_weights(model, network, config, serialized, checkpoints)
        fine_tuning.report_trained_weights(model, network, training, start)
    if training.batch_tokens == "auto":
        tokens = find_batch_tokens(model, train_batches, checkpoints)
        train_batches = train_batches.with_batch_tokens(tokens)
        eval_batches = eval_batches.with_batch_tokens(tokens)
    if is_chief:
        compute_metrics = metric_function(eval_batches, config, tokenizers, sizes, objective)
    train_step = DistributedTrainStep(group, model, build) if group is not None else None
    if group is not None and is_chief:
        members = f"{group.workers} workers" if group.workers > 1 else f"{group.size} devices"
        text = f"{members} train together; each gets a part of every batch"
        events.emit("note", node=NODE, text=text)
    state = fit(
        model,
        train_batches,
        eval_batches,
        training,
        checkpoints,
        log_dir,
        compute_metrics,
        train_step,
    )
    if not is_chief:
        return None
    return TrainingResult(
        config=config,
        network=network,
        model=model,
        state=state,
        eval_batches=eval_batches,
        tokenizers=tokenizers,
        sentencepiece_models=serialized,
        record={
            "vocabulary_sizes": sizes,
            "rows": rows,
            "batch_tokens": train_batches.batch_tokens,
            "pretrained": pretrained,
            "warm_start": start,
        },
    )


def _check_rows(split: str, counts: Mapping[str, int], max_length: int) -> None:
    """Raise a UserError if a split has no usable row; report the rows that are skipped."""
    if not counts["usable"]:
        raise UserError(
            f"The {split} split has no usable row: {counts['incomplete']} are incomplete (an empty "
            f"side, or an invalid reference), {counts['too_long']} are longer than {max_length} "
            "tokens.",
            where="training.max_length",
            remedy="Raise training.max_length, or add data.",
        )
    if counts["incomplete"] or counts["too_long"]:
        text = (
            f"{split}: skipped {counts['too_long']} rows longer than {max_length} tokens and "
            f"{counts['incomplete']} incomplete rows"
        )
        events.emit("note", node=NODE, text=text)


def _report_tags(batches: Batches, tokenizer: Any) -> None:
    """Report how often the rows of each tag are drawn, which the statistics do not show."""
    sampling: Any = batches.tag_sampling
    counts, expected = sampling.counts(np.flatnonzero(batches.buckets.usable(batches.lengths)))
    tags = {i: tokenizer.id_to_string(int(i)).numpy().decode()[1:] for i in np.flatnonzero(counts)}
    listed = ", ".join(f"{tag} {expected[i]:,.0f} of {counts[i]:,}" for i, tag in tags.items())
    events.emit("note", node=NODE, text=f"rows drawn in an epoch, by tag: {listed}")


def run_fn(fn_args: Any) -> None:
    """Train the model and export it, after any other run of the same training has ended.

    Args:
        fn_args: TFX's ``FnArgs``; its ``custom_config`` is a ``TrainerConfig`` as JSON values.

    Raises:
        UserError: a split has no usable row.
    """
    data = training_data(fn_args)
    config = TrainerConfig.model_validate(fn_args.custom_config)
    config = with_default_folder(config, fn_args.model_run_dir)
    config = with_checkpoint_key(config, data)
    job = TrainingJob(
        config=config,
        data=data,
        run_folder=fn_args.model_run_dir,
        export_folder=fn_args.serving_model_dir,
    )
    with checkpoint_lock(config.checkpoint_folder):
        if config.training.devices == "workers":
            distributed_worker.run_chief(job.model_dump_json())
        else:
            train_and_export(job, local_device_group(config.training.devices))


def train_and_export(job: TrainingJob, group: DeviceGroup | None) -> None:
    """Train in this process, and write the SavedModel, the Keras model and ``training.json``.

    Args:
        job: what to train, and where to write.
        group: the devices that train together; None for a single device.

    Raises:
        UserError: a split has no usable row.
    """
    result = train(job.config, job.data, job.run_folder, group)
    if result is None:
        return
    config, model, state = result.config, result.model, result.state
    events.emit("progress", node=NODE, text=f"step {state.step} · exporting the model")
    rows = result.eval_batches.complete_rows(_REFERENCE_ROWS)
    export(model, result.network, config, result.tokenizers, job.export_folder, rows)
    if not config.ensemble:  # the weights of an ensemble are those of several models
        write_warm_start(Path(job.export_folder), model, config, result.sentencepiece_models)
    model.save(Path(job.run_folder) / "model.keras")
    record = {
        **result.record,
        "parameters": model.count_params(),
        "trained_parameters": fine_tuning.trained_parameters(model),
        "steps": state.step,
        "epochs": state.epoch,
        "seconds": round(state.seconds, 1),
        "target_tokens": state.tokens,
        "stop_reason": state.stop_reason,
        "history": state.history,
        "best_step": state.best_step,
        "average": state.average,
        "ensemble": [member.model for member in config.ensemble],
        "devices": group.size if group else 1,
        "precision": config.training.precision,
    }
    write_json(Path(job.run_folder) / "training.json", record)
    events.emit("note", node=NODE, text=f"training ended by {state.stop_reason}")
    Checkpoints(config.checkpoint_folder).prune_others(keep=2)


def _train_with_workers(content: str) -> None:
    """Train as one of several workers.

    Args:
        content: the job as JSON; empty if this worker is not the chief.
    """
    spec = distributed_worker.WorkerSpec.from_environment(os.environ)
    group = connect_workers(spec.index, len(spec.addresses))
    code = code_digest("regard.components.trainer", "regard.models")

    def chief_job() -> list[str]:
        job = TrainingJob.model_validate_json(content)
        job = job.model_copy(update={"config": resolve_precision(job.config)})
        return [job.model_dump_json(), code]

    try:
        job, chief_code = group.broadcast_object(chief_job)
        if chief_code != code:
            raise UserError(
                "The chief and this worker run different versions of Regard.",
                remedy="Install the same version on all workers, and start them again.",
            )
        train_and_export(TrainingJob.model_validate_json(job), group)
    except _CONNECTION_ERRORS as error:
        raise distributed_worker.connection_error(error.message) from error


if __name__ == "__main__":
    distributed_worker.exit_process(distributed_worker.main(sys.argv[1:], _train_with_workers))
