"""Training on JAX equals training on TensorFlow, and resumes bit for bit."""

import keras
import numpy as np
import pytest

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.settings.trainer import (
    RunInputs,
    TrainerConfig,
    TrainingData,
    TrainingJob,
)
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.components.trainer import training_inputs
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint
from regard.models import tasks
from tests.components.trainer.backend_training import outcomes, run, start_on_jax
from tests.components.trainer.task_rows import MAX_LENGTH, write_splits
from tests.marks import slow_except

BLOCK = {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8}
TRANSFORMER = {"encoder": BLOCK, "decoder": BLOCK}
GRU = {"type": "recurrent", "cell": "gru", "units": 4}
LUONG = {
    "encoder": {"type": "recurrent", "units": 4},
    "decoder": {"type": "luong", "units": 8, "input_feeding": True},
}
FAMILIES = {
    "transformer": ("translation", TRANSFORMER, {}),
    "luong": ("translation", LUONG, {}),
    "gru": (
        "translation",
        {
            "encoder": GRU,
            "decoder": {"type": "luong", "cell": "gru", "units": 8, "input_feeding": False},
        },
        {},
    ),
    "bahdanau": ("translation", {"encoder": GRU, "decoder": {"type": "bahdanau", "units": 8}}, {}),
    "pointer": ("pointer", {"encoder": GRU, "decoder": {"units": 8}}, {}),
    "similarity": ("similarity", {"encoder": {"units": 4}, "hidden_units": 6}, {}),
    "span": ("span", {"encoder": {"units": 4}, "modelling": {"units": 4}}, {}),
}
# Three batches with unequal numbers of tokens make an update.
UPDATES = {"gradient_accumulation_steps": 3, "weight_decay": 0.1, "clip_norm": 0.5}
OPTIONS = {
    "updates": ("translation", TRANSFORMER, UPDATES),
    "lora": ("translation", TRANSFORMER, {"lora": {"rank": 2}}),
    "frozen": ("translation", TRANSFORMER, {"freeze": ["encoder", "decoder/embedding"]}),
    "guided": ("translation", TRANSFORMER, {"guided_alignment": {"weight": 0.5}}),
}
EQUAL = {**FAMILIES, **OPTIONS}
# What samples draws other numbers than TensorFlow.
HARD = {"score": "general", "alignment": {"type": "hard", "training": "reinforce"}}
SAMPLING = {
    "scheduled_sampling": (
        "translation",
        LUONG,
        {"scheduled_sampling": {"type": "inverse_sigmoid", "k": 2.0}},
    ),
    "reinforce": (
        "translation",
        {
            **LUONG,
            "attention": {
                "score": "general",
                "alignment": {"type": "hard", "training": "reinforce"},
            },
        },
        {},
    ),
}
QUICK = ("updates",)
STEPS = {"max_steps": 30, "evaluate_every": 5, "max_epochs": None}


def write_job(folder, name, task, model, training, devices="one"):
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
                "devices": devices,
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


def write_data(folder, task):
    """Write the splits of a task, and its tokenizers."""
    tokenizers = folder / "graph" / "tokenizer"
    tokenizers.mkdir(parents=True)
    write_splits(folder, task)
    settings = TokenizerConfig.model_validate(
        {"type": "char", "vocab_size": 20, "vocab_limit": "soft"}
    )
    model = train_tokenizer([b"abcdefgh"] * 8, settings)
    for feature in tasks.describe(task).text_features:
        (tokenizers / f"{feature}.model").write_bytes(model.proto)


def write_start(folder, name, job):
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


def write_other(folder, name, other):
    """Write the same training as ``name`` with files of its own."""
    content = (folder / f"{name}.json").read_text()
    (folder / f"{other}.json").write_text(content.replace(f"{name}-", f"{other}-"))
    (folder / f"{other}.npz").write_bytes((folder / f"{name}.npz").read_bytes())


@pytest.fixture(scope="module")
def on_jax(request, tmp_path_factory):
    """The folder of all selected trainings, and their outcomes on JAX, from one process."""
    folder = tmp_path_factory.mktemp("trainings")
    items = [item for item in request.session.items if item.path == request.path]
    names = {item.callspec.params["name"] for item in items if hasattr(item, "callspec")}
    selected = sorted(names & {*EQUAL, *SAMPLING})
    for name in selected:
        job = write_job(folder, name, *{**EQUAL, **SAMPLING}[name])
        write_start(folder, name, job)
        write_other(folder, name, f"{name}-tensorflow")
    return folder, outcomes(start_on_jax(folder, selected))


@pytest.mark.parametrize("name", slow_except(QUICK, EQUAL))
def test_losses_equal_those_of_tensorflow(on_jax, monkeypatch, name):
    folder, results = on_jax
    monkeypatch.setattr(training_inputs, "GROWTH", COARSE_GROWTH)  # the same batches
    ours = run(folder, f"{name}-tensorflow")
    assert len(ours["losses"]) == 6
    for kind in ("losses", "train_losses"):
        np.testing.assert_allclose(results[name][kind], ours[kind], rtol=1e-4)
    assert ours["losses"][-1] != ours["losses"][0]


@pytest.mark.parametrize("name", slow_except((), SAMPLING))
def test_what_samples_trains_on_jax(on_jax, name):
    _, results = on_jax
    assert np.isfinite(results[name]["losses"]).all()
    assert results[name]["losses"][-1] < results[name]["losses"][0]
