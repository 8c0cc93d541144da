"""Jobs of small trainings, with their data, for ``backend_training`` and for ``train_on_jax``."""

from pathlib import Path
from typing import Any

import keras

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.settings.trainer import RunInputs, TrainerConfig, TrainingData, TrainingJob
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.components.trainer import training_inputs
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint
from regard.models import tasks
from tests.components.trainer.task_rows import MAX_LENGTH, write_splits

# Rounding may decide on which side of its kink a ReLU is, and trainings part there.
BLOCK = {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8, "activation": "gelu"}
TRANSFORMER = {"encoder": BLOCK, "decoder": BLOCK}
STEPS = {"max_steps": 30, "evaluate_every": 5, "max_epochs": None}


def write_job(
    folder: Path, name: str, task: str, model: dict[str, Any], training: dict[str, Any]
) -> TrainingJob:
    """Write a training for ``backend_training.run``."""
    width = {"width": 8} if task == "pointer" else {"embedding": 8}
    search = tasks.describe(task).search
    config = TrainerConfig.model_validate(
        {
            "task": task,
            "model": {"dropout": 0.0, **width, **model},
            "training": {
                "batch_tokens": 160,
                "max_length": MAX_LENGTH,
                "learning_rate": 0.01,
                "early_stopping": None,
                "precision": "float32",
                "warm_start": {},
                **STEPS,
                **training,
            },
            "search": search[1].model_dump(mode="json") if search else None,
        }
    )
    data = folder / f"data-{task}"
    if not data.exists():
        write_data(data, task)
    files = {f"{split}_files": [str(data / f"{split}.arrow")] for split in ("train", "eval")}
    job = TrainingJob(
        config=config,
        run=RunInputs(checkpoints=str(folder / f"{name}-checkpoints"), checkpoint_key="key"),
        data=TrainingData(**files, transform_graph=str(data / "graph")),
        run_folder=str(folder / f"{name}-run"),
    )
    (folder / f"{name}.json").write_text(job.model_dump_json())
    return job


def write_data(folder: Path, task: str) -> None:
    """Write the splits of a task, and its tokenizers."""
    tokenizers = folder / "graph" / "tokenizer"
    tokenizers.mkdir(parents=True)
    write_splits(folder, task)
    settings = TokenizerConfig.model_validate(
        {"type": "bpe", "vocab_size": 20, "vocab_limit": "soft"}
    )
    model = train_tokenizer([b"abcdefgh"] * 8, settings)
    for feature in tasks.describe(task).text_features:
        (tokenizers / f"{feature}.model").write_bytes(model.proto)


def write_start(folder: Path, name: str, job: TrainingJob) -> None:
    """Write the weights that the trainings of both backends start from."""
    inputs = training_inputs.read_inputs(job.config, job.data, None)
    keras.utils.set_random_seed(1)
    model = inputs.network.build(job.config.model, job.config.training, inputs.vocabulary_sizes)
    WarmStartCheckpoint(
        name="start@1",
        task=job.config.task,
        model=job.config.model_settings,
        weight_names=[weight.path for weight in model.weights],
        weights=model.get_weights(),
        tokenizers=dict(inputs.sentencepiece_models),
    ).save(folder / f"{name}.npz")


def write_other(folder: Path, name: str, other: str, **training: Any) -> None:
    """Write the same training as ``name`` with files of its own, and with other settings."""
    content = (folder / f"{name}.json").read_text().replace(f"{name}-", f"{other}-")
    job = TrainingJob.model_validate_json(content)
    job = job.model_copy(update={"config": job.config.with_training(**training)})
    (folder / f"{other}.json").write_text(job.model_dump_json())
    (folder / f"{other}.npz").write_bytes((folder / f"{name}.npz").read_bytes())
