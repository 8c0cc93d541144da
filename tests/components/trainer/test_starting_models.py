"""Reading the models that a training starts from, or decodes together with."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from regard.components.settings.trainer import RunInputs, TrainingData, TrainingJob
from regard.components.trainer.starting_models import (
    check_ensemble,
    read_start,
    read_starting_model,
)
from regard.core.errors import UserError
from tests.components.trainer.tiny_training import assert_equal_arrays
from tests.components.trainer.warm_start_models import (
    LSTM,
    NEW,
    OLD,
    build,
    save,
    starting_model,
    trainer_config,
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """An untrained model: its configuration, its weights, and the model to start from."""
    config = trainer_config(LSTM)
    model = build(config, OLD)
    folder = save(tmp_path_factory.mktemp("untrained") / "saved", model, config, OLD)
    return config, model.get_weights(), starting_model(folder)


def training_job(folder, config, tokenizers=OLD, **run):
    """A job with these tokenizers, and with its checkpoints in a folder."""
    tokenizer_folder = folder / "graph" / "tokenizer"
    tokenizer_folder.mkdir(parents=True, exist_ok=True)
    for side, serialized in tokenizers.items():
        (tokenizer_folder / f"{side}.model").write_bytes(serialized)
    return TrainingJob(
        config=config,
        run=RunInputs(checkpoints=str(folder / "checkpoints"), checkpoint_key="key", **run),
        data=TrainingData([], [], str(folder / "graph")),
        run_folder=str(folder / "log"),
    )


def assert_refused(origin, message):
    with pytest.raises(UserError) as error:
        read_starting_model(origin)
    assert error.value.where == "training.warm_start"
    assert message in str(error.value)


def test_a_new_training_reads_its_start_and_another_does_not(exported, tmp_path):
    config, weights, origin = exported
    job = training_job(tmp_path, config, start=origin)
    checkpoint = read_start(job)
    assert_equal_arrays(checkpoint.weights, weights)
    assert (checkpoint.name, checkpoint.digest) == (origin.model, origin.digest)
    assert read_start(training_job(tmp_path, config)) is None
    without = config.with_training(warm_start=None)
    assert read_start(training_job(tmp_path, without, start=origin)) is None
    job.run.checkpoint_folder.mkdir(parents=True)
    (job.run.checkpoint_folder / "last.npz").write_bytes(b"the weights of the training")
    missing = origin.model_copy(update={"path": str(tmp_path / "missing")})
    assert read_start(training_job(tmp_path, config, start=missing)) is None


@pytest.mark.parametrize(
    ("tokenizers", "changes", "message"),
    [
        (OLD, {}, None),
        (NEW, {}, "The source vocabularies of this run and tiny@1 differ."),
        (OLD, {"digest": "other"}, "tiny@1 have changed since"),
        (OLD, {"path": "/nowhere"}, "does not exist any more"),
    ],
)
def test_models_of_an_ensemble_are_checked(exported, tmp_path, tokenizers, changes, message):
    config, _, origin = exported
    member = origin.model_copy(update=changes)
    job = training_job(tmp_path, config, tokenizers, ensemble=(member,))
    if message is None:
        check_ensemble(job)
        return
    with pytest.raises(UserError, match=message) as error:
        check_ensemble(job)
    assert error.value.where == "training.ensemble"


def test_damaged_models_are_refused(exported, tmp_path):
    *_, origin = exported
    missing = origin.model_copy(update={"path": str(tmp_path / "missing")})
    assert_refused(missing, "tiny@1 does not exist")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    origin_of_damaged = origin.model_copy(update={"path": str(damaged)})
    assert_refused(origin_of_damaged, "not exported by this version")
    (damaged / "assets.extra").mkdir()
    complete = Path(origin.path, "assets.extra/training.npz").read_bytes()
    # The last one lacks the weights.
    for content in (b"", b"no zip", complete[:100], complete):
        (damaged / "assets.extra/training.npz").write_bytes(content)
        assert_refused(origin_of_damaged, "cannot be read")


def test_changed_models_are_refused(exported, tmp_path):
    *_, origin = exported
    message = "have changed since its digest"
    assert_refused(origin.model_copy(update={"digest": "nonsense"}), message)
    copy = shutil.copytree(origin.path, tmp_path / "saved")
    (copy / "saved_model.pb").write_bytes(b"exported again")
    assert_refused(origin.model_copy(update={"path": str(copy)}), message)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    config = trainer_config(LSTM)
    model = build(config, OLD)
    model.weights[0].assign(np.full(model.weights[0].shape, np.nan))
    origin = starting_model(save(tmp_path / "saved", model, config, OLD))
    assert_refused(origin, "of tiny@1 is not finite")
