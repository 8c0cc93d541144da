"""A training in a process on JAX, and its model on TensorFlow."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from regard.components.settings.trainer import StartingModel
from regard.components.trainer import job_process
from regard.components.trainer.checkpoint import TrainState
from regard.components.trainer.jax_job import TrainedWeights, checked_loss
from regard.components.trainer.jax_training import limit_size, rebuild, train_on_jax
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.optimizer_state import adam_moments
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.components.trainer.train import TrainingResult, build_model
from regard.components.trainer.training_inputs import read_inputs
from regard.core.errors import UserError
from tests.components.trainer.backend_jobs import TRANSFORMER, write_job
from tests.components.trainer.tiny_training import assert_equal_arrays
from tests.tolerances import close_to


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """The result of a training of no steps, as the process on JAX would leave it."""
    folder = tmp_path_factory.mktemp("untrained")
    job = write_job(folder, "job", "translation", TRANSFORMER, {})
    inputs = read_inputs(job.config, job.data, None)
    model = build_model(job.config, inputs)
    compile_model(model, job.config.training)
    for number, moment in enumerate(adam_moments(model.optimizer)):
        moment.assign(np.full(moment.shape, number))
    result = TrainingResult(
        job=job,
        network=inputs.network,
        model=model,
        state=TrainState(step=5, history=[{"step": 5, "loss": 1.5}]),
        eval_batches=inputs.eval,
        sentencepiece_models=inputs.sentencepiece_models,
        devices=1,
        record={
            "vocabulary_sizes": inputs.vocabulary_sizes,
            "rows": inputs.rows,
            "batch_tokens": inputs.train.batch_tokens,
        },
    )
    return TrainedWeights(
        job=job,
        state=result.state,
        record=result.record,
        devices=4,
        updates=5,
        loss=checked_loss(result),
        weights=model.get_weights(),
        adam_moments=[np.array(moment) for moment in adam_moments(model.optimizer)],
    )


def test_trained_weights_are_read_as_they_were_written(untrained, tmp_path):
    untrained.save(tmp_path / "result.npz")
    loaded = TrainedWeights.load(tmp_path / "result.npz")
    for name in ("weights", "adam_moments"):
        assert_equal_arrays(getattr(loaded, name), getattr(untrained, name))
    plain = {"weights": [], "adam_moments": []}
    assert dataclasses.replace(loaded, **plain) == dataclasses.replace(untrained, **plain)


def test_a_rebuilt_model_has_the_weights_and_the_state_of_the_optimizer(untrained):
    result = rebuild(untrained)
    assert_equal_arrays(result.model.get_weights(), untrained.weights)
    assert_equal_arrays(adam_moments(result.model.optimizer), untrained.adam_moments)
    assert int(result.model.optimizer.iterations) == 5
    assert (result.state, result.devices) == (untrained.state, 4)


def test_a_rebuilt_model_is_compared_on_batches_of_the_size_that_was_found(untrained):
    config = untrained.job.config.with_training(batch_tokens="auto")
    job = untrained.job.model_copy(update={"config": config})
    result = rebuild(dataclasses.replace(untrained, job=job))
    assert result.eval_batches.batch_tokens == untrained.record["batch_tokens"]


def test_a_rebuilt_model_with_another_loss_is_refused(untrained):
    changed = [weight + 0.5 for weight in untrained.weights]
    with pytest.raises(RuntimeError, match="another loss"):
        rebuild(dataclasses.replace(untrained, weights=changed))


def test_a_training_on_jax_returns_its_model_on_tensorflow(tmp_path, monkeypatch):
    """Evaluations decode, so that the search is compiled too."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    options = {"backend": "jax", "max_steps": 4, "evaluate_every": 2, "validation_rows": 4}
    options["gradient_accumulation_steps"] = 2
    job = write_job(tmp_path, "job", "translation", TRANSFORMER, options)
    result = train_on_jax(job)
    assert result.state.stop_reason == "max_steps: 4"
    assert [entry["step"] for entry in result.state.history] == [2, 4]
    assert {"loss", "train_loss", "bleu"} <= result.state.history[-1].keys()
    assert int(result.model.optimizer.iterations) == 4
    assert result.record["rows"]["train"]["usable"] == 70
    batches = epoch_dataset(result.eval_batches)
    evaluated = result.model.evaluate(batches, verbose=0, return_dict=True)
    expected = result.state.history[-1]["loss"]
    assert result.model.evaluation_metrics(evaluated)["loss"] == close_to(expected)
    assert list(Path(job.run_folder).glob("events.out.tfevents.*"))
    assert not list(job.run.checkpoint_folder.glob(".jax-*"))


def test_the_oldest_files_of_a_folder_are_deleted(tmp_path):
    for number in range(4):
        file = tmp_path / str(number)
        file.write_bytes(b"1234")
        os.utime(file, (number, number))
    limit_size(tmp_path, 10)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["2", "3"]
    limit_size(tmp_path / "missing", 10)


def test_leftovers_of_a_killed_run_are_removed(tmp_path, monkeypatch):
    """With the programs written since it started, of which JAX may have written a part."""
    monkeypatch.setattr(job_process, "run_process", lambda *_, **__: pytest.fail("stop"))
    job = write_job(tmp_path, "job", "translation", TRANSFORMER, {"backend": "jax"})
    checkpoints = job.run.checkpoint_folder
    compiled = checkpoints.parent / "compiled"
    compiled.mkdir(parents=True)
    for name, seconds in (("old", 0), ("new", 2)):
        (compiled / "autotuned").mkdir(exist_ok=True)
        for file in (compiled / name, compiled / "autotuned" / name):
            file.touch()
            os.utime(file, (seconds, seconds))
    (checkpoints / ".jax-killed").mkdir(parents=True)
    (checkpoints / ".jax-killed" / "result.npz").touch()
    os.utime(checkpoints / ".jax-killed", (1, 1))
    with pytest.raises(pytest.fail.Exception):
        train_on_jax(job)
    assert {file.name for file in compiled.rglob("*") if file.is_file()} == {"old"}
    assert not list(checkpoints.glob(".jax-*"))


@pytest.mark.parametrize("error", [job_process.ProcessExit(-9, "trains"), KeyboardInterrupt()])
def test_programs_of_a_process_that_is_killed_are_removed(tmp_path, monkeypatch, error):
    job = write_job(tmp_path, "job", "translation", TRANSFORMER, {"backend": "jax"})
    compiled = job.run.checkpoint_folder.parent / "compiled"

    def run_process(module, content, purpose, environment):
        assert environment["JAX_COMPILATION_CACHE_DIR"] == str(compiled)
        (compiled / "half").touch()
        raise error

    monkeypatch.setattr(job_process, "run_process", run_process)
    compiled.mkdir(parents=True)
    (compiled / "old").touch()
    os.utime(compiled / "old", (1, 1))
    with pytest.raises(type(error)):
        train_on_jax(job)
    assert [file.name for file in compiled.iterdir()] == ["old"]


def job_with_missing_start(tmp_path):
    """A job whose model to start from does not exist."""
    options = {"backend": "jax", "warm_start": {"model": "m@1"}}
    job = write_job(tmp_path, "job", "translation", TRANSFORMER, options)
    missing = StartingModel(model="m@1", path=str(tmp_path / "missing"), digest="1")
    return job.model_copy(update={"run": job.run.model_copy(update={"start": missing})})


def test_a_start_that_is_gone_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(job_process, "run_process", lambda *_, **__: pytest.fail("started"))
    with pytest.raises(UserError) as error:
        train_on_jax(job_with_missing_start(tmp_path))
    assert error.value.where == "training.warm_start"


def test_checkpoints_of_another_precision_do_not_replace_a_start(tmp_path, monkeypatch):
    """Only the process knows its precision, and so whether it has checkpoints."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    job = job_with_missing_start(tmp_path)
    folder = job.run.checkpoint_folder
    folder.mkdir(parents=True)
    mixed = folder.with_name(f"{folder.name}-mixed_bfloat16")
    mixed.mkdir()
    (mixed / "last.npz").touch()
    with pytest.raises(UserError) as error:
        train_on_jax(job)
    assert error.value.where == "training.warm_start"
    assert "m@1 does not exist any more" in error.value.message


def test_an_error_of_the_process_is_raised(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    job = write_job(tmp_path, "job", "translation", TRANSFORMER, {"backend": "jax"})
    job = job.model_copy(update={"config": job.config.with_training(max_length=2)})
    with pytest.raises(UserError) as error:
        train_on_jax(job)
    assert error.value.where == "training.max_length"
