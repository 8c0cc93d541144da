"""Initial weights from another model: equal or mapped vocabularies, and refusals."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text as text

from regard.components.trainer import warm_start
from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import Checkpoints, TrainState
from regard.components.trainer.export import read_warm_start
from regard.components.trainer.optimizer_state import adam_moments
from regard.components.trainer.starting_models import read_starting_model
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.components.trainer.training_loop import fit
from regard.core import events
from regard.core.errors import UserError
from regard.models import tasks
from tests.components.trainer.pairs import write_pairs
from tests.components.trainer.tiny_training import assert_equal_arrays, checkpoint_arrays
from tests.components.trainer.warm_start_models import (
    ARCHITECTURES,
    LSTM,
    NETWORK,
    NEW,
    OLD,
    SIDES,
    STACK,
    TRANSFORMER,
    WORDS,
    build,
    save,
    starting_model,
    trainer_config,
    with_training,
)
from tests.marks import slow
from tests.models.tasks.task_parts import module_of
from tests.tolerances import close_to


def corpus_batches(folder, serialized):
    """The batches of a small corpus; each line is its own translation."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=serialized["source"])
    pairs = [(ids, ids) for ids in processor.encode(WORDS * 4)]
    folder.mkdir()
    return Batches([write_pairs(folder / "rows.arrow", pairs)], NETWORK, 200, 20, seed=5)


def evaluate(model, batches):
    return model.evaluate(epoch_dataset(batches), verbose=0, return_dict=True)["plain_loss"]


@pytest.fixture(scope="module", params=["lstm", slow("transformer")])
def earlier(request, tmp_path_factory):
    """A complete training: configuration, model to start from, model, final state, batches."""
    folder = tmp_path_factory.mktemp(request.param)
    config = trainer_config(
        ARCHITECTURES[request.param],
        max_steps=60,
        max_epochs=None,
        evaluate_every=20,
        warm_start={"optimizer": True},
    )
    model, batches = build(config, OLD), corpus_batches(folder / "data", OLD)
    checkpoints, log_dir = Checkpoints(folder / "ck"), str(folder / "log")
    state = fit(model, batches, batches, config.training, checkpoints, log_dir)
    origin = starting_model(save(folder / "saved", model, config, OLD))
    return config, origin, model, state, batches


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The file of the events."""
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(path))
    return path


def start(config, origin, serialized, folder, seed=2):
    model = build(config, serialized, seed)
    task, checkpoints = tasks.get_network(config.task), Checkpoints(folder / "ck")
    checkpoint = read_starting_model(origin) if origin else None
    report = warm_start.initialize_weights(model, task, config, checkpoint, serialized, checkpoints)
    return model, report


def test_an_equal_vocabulary_continues_with_the_optimizer_state(earlier, tmp_path, log):
    config, origin, old, state, batches = earlier
    model, report = start(config, origin, OLD, tmp_path)
    assert_equal_arrays(model.get_weights(), old.get_weights())
    best = min(entry["loss"] for entry in state.history)
    assert evaluate(model, batches) == close_to(best)
    digest = origin.digest
    assert report == {"model": "tiny@1", "digest": digest, "optimizer": True, "vocabularies": {}}
    assert_equal_arrays(adam_moments(model.optimizer), adam_moments(old.optimizer))
    assert int(model.optimizer.iterations) == 60
    assert "continues after 60 steps at a learning rate of 0.02" in log.read_text()


def test_another_vocabulary_starts_from_mapped_rows(earlier, tmp_path, log):
    config, origin, old, state, _ = earlier
    batches = corpus_batches(tmp_path / "data", NEW)
    random_loss = evaluate(build(config, NEW, seed=2), batches)
    model, report = start(config, origin, NEW, tmp_path)
    loss = evaluate(model, batches)
    assert loss < 0.5 * random_loss
    assert loss > state.best_score  # the model was not trained on these tokens
    counts = report["vocabularies"]["target"]
    assert min(counts["copied"], counts["composed"], counts["new"]) > 0
    assert report["vocabularies"]["source"] == counts
    by_token = {id(weight) for weight, *_ in NETWORK.vocab_weights(model)}
    others = [
        (weight, old_weight)
        for weight, old_weight in zip(model.weights, old.weights, strict=True)
        if id(weight) not in by_token
    ]
    assert others
    assert_equal_arrays(*zip(*others, strict=True))
    # The optimizer state belongs to the old vocabulary.
    assert report["optimizer"] is False
    assert int(model.optimizer.iterations) == 0
    assert "the optimizer starts afresh: the vocabulary differs" in log.read_text()


def test_a_training_with_a_checkpoint_keeps_its_weights(earlier, tmp_path, log):
    config, origin, *_ = earlier
    model, report = start(config, origin, OLD, tmp_path)
    with contextlib.closing(Checkpoints(tmp_path / "ck")) as checkpoints:
        checkpoints.save(model, TrainState(batches=1))
    log.unlink()
    resumed = build(config, OLD, seed=3)
    weights = resumed.get_weights()
    arguments = resumed, NETWORK, config, None, OLD, Checkpoints(tmp_path / "ck")
    assert warm_start.initialize_weights(*arguments) == report
    assert_equal_arrays(resumed.get_weights(), weights)
    # The report may be lost.
    path = tmp_path / "ck/warm_start.json"
    for content in ("{", "[]", None):
        path.unlink() if content is None else path.write_text(content)
        assert warm_start.initialize_weights(*arguments) == {}
    assert not log.exists()


def assert_refused(config, serialized, message, old):
    """Assert that the weights of a checkpoint are refused."""
    model = build(config, serialized)
    before = model.get_weights()
    with pytest.raises(UserError) as error:
        warm_start.load_weights(model, NETWORK, config, serialized, old)
    assert_equal_arrays(model.get_weights(), before)
    assert error.value.where == "training.warm_start"
    assert message in str(error.value)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """An untrained model for refusals: configuration, model to start from, checkpoint."""
    config = trainer_config(LSTM)
    folder = tmp_path_factory.mktemp("untrained") / "saved"
    save(folder, build(config, OLD), config, OLD)
    return config, starting_model(folder), read_warm_start(folder, "tiny@1")


def test_another_architecture_is_refused(untrained):
    config, _, old = untrained
    wider = trainer_config({**LSTM, "encoder": {"type": "recurrent", "units": 9}})
    assert_refused(wider, OLD, "model.encoder.units is 9 here and 8 there", old)
    assert_refused(wider, OLD, "kernel (2, 16, 36) here is ", old)
    transformer = trainer_config(TRANSFORMER)
    message = "model.encoder.type is transformer here and recurrent there"
    assert_refused(transformer, OLD, message, old)
    # Equal shapes, but another network.
    dot = trainer_config({**LSTM, "attention": {"score": "dot"}})
    scaled = trainer_config({**LSTM, "attention": {"score": "scaled_dot"}})
    model = build(dot, OLD)
    other = replace(
        old,
        model=dot.model_settings,
        weights=model.get_weights(),
        weight_names=[weight.path for weight in model.weights],
    )
    message = "model.attention.score.type is scaled_dot here and dot there"
    assert_refused(scaled, OLD, message, other)
    shorter = replace(old, weight_names=old.weight_names[:-1], weights=old.weights[:-1])
    assert_refused(config, OLD, "here is missing there", shorter)


def test_settings_that_an_older_version_lacks_have_their_defaults(untrained):
    *_, old = untrained
    config = trainer_config(TRANSFORMER)
    settings = config.model_settings
    del settings["encoder"]["norm_epsilon"], settings["encoder"]["read_end"]
    model = build(config, OLD)
    older = replace(
        old,
        model=settings,
        weights=model.get_weights(),
        weight_names=[weight.path for weight in model.weights],
    )
    warm_start.load_weights(model, NETWORK, config, OLD, older)
    other = {**TRANSFORMER, "encoder": {**TRANSFORMER["encoder"], "norm_epsilon": 1e-3}}
    message = "model.encoder.norm_epsilon is 0.001 here and 1e-05 there"
    assert_refused(trainer_config(other), OLD, message, older)


def test_settings_that_do_not_change_the_weights_may_differ(untrained):
    *_, old = untrained
    config = trainer_config({**LSTM, "dropout": 0.3})
    model = build(config, OLD, seed=2)
    warm_start.load_weights(model, NETWORK, config, OLD, old)
    assert_equal_arrays(model.get_weights(), old.weights)


def test_missing_or_damaged_tokenizers_are_refused(untrained):
    config, _, old = untrained
    incomplete = replace(old, tokenizers={"source": OLD["source"]})
    assert_refused(config, OLD, "The target tokenizer of tiny@1", incomplete)
    damaged = replace(old, tokenizers=dict.fromkeys(SIDES, b"junk"))
    assert_refused(config, OLD, "The source tokenizer of tiny@1", damaged)
    assert_refused(config, OLD, "is a model for pointer", replace(old, task="pointer"))


def test_a_model_without_optimizer_state_starts_the_optimizer_afresh(untrained, tmp_path, log):
    _, origin, old = untrained
    assert old.adam_moments == []
    options = {"warm_start": {"optimizer": True}, "gradient_accumulation_steps": 2}
    model, report = start(trainer_config(LSTM, **options), origin, OLD, tmp_path)
    assert report["optimizer"] is False
    assert "starts afresh: there is no stored state" in log.read_text()
    assert int(model.optimizer.iterations) == 0


def test_the_schedule_counts_updates_and_not_batches(earlier, tmp_path):
    config, origin, *_ = earlier
    config = with_training(config, gradient_accumulation_steps=3)
    model, _ = start(config, origin, OLD, tmp_path)
    assert int(model.optimizer.iterations) == 60
    assert int(model.optimizer._iterations) == 180


def test_without_a_model_to_start_from_the_weights_are_random(tmp_path, log):
    config = trainer_config(LSTM)
    model, report = start(config, None, OLD, tmp_path)
    assert_equal_arrays(model.get_weights(), build(config, OLD, 2).get_weights())
    assert report == {}
    assert "no model to start from yet" in log.read_text()
    assert start(with_training(config, warm_start=None), None, OLD, tmp_path)[1] == {}


def test_a_list_of_encoders_starts_from_the_average_of_checkpoints(tmp_path):
    averaging = {"checkpoint_averaging": {"checkpoints": 2}}
    limits = {"max_steps": 12, "max_epochs": None, "evaluate_every": 4}
    config = trainer_config(STACK, **limits, **averaging)
    old, batches = build(config, OLD), corpus_batches(tmp_path / "data", OLD)
    checkpoints = Checkpoints(tmp_path / "old")
    state = fit(old, batches, batches, config.training, checkpoints, str(tmp_path / "log"))
    assert state.average["steps"] == [8, 12]
    snapshots = [checkpoint_arrays(tmp_path / f"old/step-{step}.npz") for step in (8, 12)]
    for weight, first, second in zip(old.weights, *snapshots, strict=True):
        mean = np.mean([first, second], axis=0, dtype=np.float64)
        np.testing.assert_allclose(weight, mean, rtol=1e-6, atol=1e-7)
    assert any((one != other).any() for one, other in zip(*snapshots, strict=True))
    origin = starting_model(save(tmp_path / "saved", old, config, OLD))
    model, _ = start(config, origin, OLD, tmp_path / "same")
    assert_equal_arrays(model.get_weights(), old.get_weights())
    assert evaluate(model, batches) == close_to(state.average["loss"])
    model, report = start(config, origin, NEW, tmp_path / "new")
    assert report["vocabularies"]["source"]["copied"] > 0
    by_token = {id(weight) for weight, *_ in NETWORK.vocab_weights(model)}
    assert id(model.encoder.encoders[0].embedding.table) in by_token
    for weight, before in zip(model.weights, old.weights, strict=True):
        if id(weight) not in by_token:
            np.testing.assert_array_equal(weight, before)


def test_differences_within_a_list_of_encoders_are_named(tmp_path):
    config = trainer_config(STACK)
    folder = tmp_path / "saved"
    save(folder, build(config, OLD), config, OLD)
    old = read_warm_start(folder, "tiny@1")
    convolutional, recurrent = STACK["encoder"]
    wider = trainer_config({**STACK, "encoder": [convolutional, {**recurrent, "units": 9}]})
    assert_refused(wider, OLD, "model.encoder.1.units is 9 here and 8 there", old)
    one = trainer_config({**STACK, "encoder": [convolutional]})
    assert_refused(one, OLD, "model.encoder is ", old)
    same = trainer_config({**STACK, "dropout": 0.5})
    model = build(same, OLD, seed=2)
    warm_start.load_weights(model, NETWORK, same, OLD, old)
    assert_equal_arrays(model.get_weights(), old.weights)


OTHER_TASKS = {
    "similarity": {"embedding": 8, "oov_buckets": 7, "hidden_units": 6, "encoder": {"units": 4}},
    "captioning": {
        "image": {"height": 16, "width": 16},
        "encoder": {"channels": [4], "units": 8},
        "decoder": {"type": "bahdanau", "units": 8},
        "embedding": 8,
    },
    "pointer": {"width": 8, "encoder": {"type": "recurrent", "units": 4}, "decoder": {"units": 8}},
    "span": {"embedding": 8, "encoder": {"units": 4}, "modelling": {"units": 4}},
}


@pytest.mark.parametrize("task", OTHER_TASKS)
def test_warm_start_of_every_task(task, tmp_path):
    """A new vocabulary changes the rows of tokens only."""
    config = trainer_config(OTHER_TASKS[task], task)
    features = tasks.describe(task).text_features
    old_tokenizers, new_tokenizers = (
        dict.fromkeys(features, tokenizers["source"]) for tokenizers in (OLD, NEW)
    )
    old = build(config, old_tokenizers)
    origin = starting_model(save(tmp_path / "saved", old, config, old_tokenizers))
    model, _ = start(config, origin, old_tokenizers, tmp_path / "same")
    assert_equal_arrays(model.get_weights(), old.get_weights())
    model, report = start(config, origin, new_tokenizers, tmp_path / "new")
    assert set(report["vocabularies"]) == {*features}
    by_token = {id(weight) for weight, *_ in tasks.get_network(task).vocab_weights(model)}
    for weight, old_weight in zip(model.weights, old.weights, strict=True):
        if id(weight) not in by_token:
            np.testing.assert_array_equal(weight, old_weight)
    if task == "similarity":  # the rows of unknown words belong to no token
        table, old_table = (np.asarray(one.encoder.embedding.table) for one in (model, old))
        np.testing.assert_array_equal(table[-7:], old_table[-7:])


@pytest.mark.parametrize("task", tasks.TASKS)
def test_exports_hold_the_weights_in_order(task):
    config = trainer_config({**OTHER_TASKS, "translation": LSTM, "summarisation": LSTM}[task], task)
    serialized = dict.fromkeys(tasks.describe(task).text_features, OLD["source"])
    model = build(config, serialized)
    tokenizers = {
        name: text.SentencepieceTokenizer(one, out_type=tf.int32, name=f"{name}_tokenizer")
        for name, one in serialized.items()
    }
    module = module_of(task, model, tokenizers, config.model, config.search)
    assert [id(one) for one in module.weights] == [id(one.value) for one in model.weights]
