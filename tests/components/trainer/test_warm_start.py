"""The first weights from another model: the same, those of another vocabulary, or a refusal."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text as text

from components.errors import UserError
from components.trainer import warm_start
from components.trainer.checkpoint import Checkpoints, Position
from components.trainer.data import Batches
from components.trainer.fitting import fit
from components.trainer.kept import read
from components.trainer.optimizer import moments_of
from models import tasks
from tests.components.trainer.records import SPEC, write
from tests.components.trainer.starting import (
    KINDS,
    LSTM,
    NEW,
    OLD,
    SIDES,
    TASK,
    TRANSFORMER,
    WORDS,
    build,
    put,
    settings,
    start_of,
)


def data(folder, serialized):
    """The batches of a little corpus; each line is its own translation."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=serialized["source"])
    pairs = [(ids, ids) for ids in processor.encode(WORDS * 4)]
    folder.mkdir()
    return Batches([write(folder / "rows.gz", pairs)], SPEC, TASK, 200, 20, seed=5)


def loss(model, batches):
    return model.evaluate(batches.epoch(), verbose=0, return_dict=True)["plain_loss"]


@pytest.fixture(scope="module", params=KINDS)
def ended(request, tmp_path_factory):
    """A training that has ended: its settings, its model, its last loss, where it was put."""
    folder = tmp_path_factory.mktemp(request.param)
    config = settings(KINDS[request.param], max_steps=60, max_epochs=None)
    config["training"]["warm_start"]["optimizer"] = True
    model, batches = build(config, OLD), data(folder / "data", OLD)
    checkpoints = Checkpoints(folder / "ck")
    position = fit(
        model, batches, batches, config["training"], checkpoints, str(folder / "log"), None
    )
    config["start"] = start_of(put(folder / "saved", model, config, OLD))
    return config, model, position, batches


def begin(config, serialized, folder, seed=2):
    model = build(config, serialized, seed)
    task = tasks.get(config["task"])
    report = warm_start.begin(model, task, config, serialized, Checkpoints(folder / "ck"))
    return model, report


def test_it_goes_on_where_the_other_one_ended(ended, tmp_path):
    config, old, position, batches = ended
    model, report = begin(config, OLD, tmp_path)
    for ours, theirs in zip(model.get_weights(), old.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    best = min(entry["loss"] for entry in position.history)
    assert loss(model, batches) == pytest.approx(best, abs=1e-6)
    digest = config["start"]["digest"]
    assert report == {"model": "tiny@1", "digest": digest, "optimizer": True, "vocabularies": {}}
    for ours, theirs in zip(moments_of(model.optimizer), moments_of(old.optimizer), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert int(model.optimizer.iterations) == 60


def test_another_vocabulary_is_understood_from_the_old_one(ended, tmp_path):
    config, old, position, _ = ended
    config = json.loads(json.dumps(config))
    config["training"]["warm_start"]["optimizer"] = False
    batches = data(tmp_path / "data", NEW)
    fresh = loss(build(config, NEW, seed=2), batches)
    model, report = begin(config, NEW, tmp_path)
    first = loss(model, batches)
    assert first < 0.5 * fresh
    assert first > position.best  # it has not seen these pieces
    found = report["vocabularies"]["target"]
    assert min(found["copied"], found["composed"], found["new"]) > 0
    assert report["vocabularies"]["source"] == found
    # What counts no pieces is taken over as it is.
    by_piece = {id(weight) for weight, *_ in TASK.by_piece(model)}
    others = [
        (ours, theirs)
        for ours, theirs in zip(model.weights, old.weights, strict=True)
        if id(ours) not in by_piece
    ]
    assert others
    for ours, theirs in others:
        np.testing.assert_array_equal(ours, theirs)


def test_a_training_that_has_begun_is_left_alone(ended, tmp_path, monkeypatch):
    config, _, _, _ = ended
    model, report = begin(config, OLD, tmp_path)
    Checkpoints(tmp_path / "ck").save(model, Position(batch=1))
    gone = {**config, "start": {**config["start"], "path": str(tmp_path / "gone")}}
    own = build(config, OLD, seed=3)
    weights = own.get_weights()
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    again = warm_start.begin(own, TASK, gone, OLD, Checkpoints(tmp_path / "ck"))
    assert again == report
    for ours, theirs in zip(own.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not told.exists()


def test_what_a_training_has_started_from_may_be_lost(ended, tmp_path, monkeypatch):
    config, _, _, _ = ended
    model, _ = begin(config, OLD, tmp_path)
    Checkpoints(tmp_path / "ck").save(model, Position(batch=1))
    told, report = tmp_path / "events.jsonl", tmp_path / "ck/warm_start.json"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    for broken in ("{", "[]", None):
        report.unlink() if broken is None else report.write_text(broken)
        again = warm_start.begin(model, TASK, config, OLD, Checkpoints(tmp_path / "ck"))
        assert again == {}
    assert told.read_text().count("what it has started from is no longer told") == 3


def refused(config, serialized, old=None, **start):
    config = {**config, "start": {**config["start"], **start}}
    model = build(config, serialized)
    before = model.get_weights()
    if old is None:
        start, last = warm_start.begin, [Checkpoints("/nowhere")]
    else:
        start, last = warm_start.apply, [old, "tiny@1"]
    with pytest.raises(UserError) as caught:
        start(model, TASK, config, serialized, *last)
    for ours, theirs in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert caught.value.where.startswith("training.warm_start")
    return str(caught.value)


@pytest.fixture(scope="module")
def simple(tmp_path_factory):
    """A model that has not been trained, for what is refused anyway: settings and what it kept."""
    config = settings(LSTM)
    model = build(config, OLD)
    folder = put(tmp_path_factory.mktemp("simple") / "saved", model, config, OLD)
    config["start"] = start_of(folder)
    return config, read(folder), folder


def test_another_architecture_is_refused(simple):
    config, old, _ = simple
    wider = settings({**LSTM, "encoder": {"type": "recurrent", "units": 9}})
    told = refused(wider, OLD, old)
    assert "model.encoder.units is 9, and there 8" in told
    assert "kernel is (2, 16, 36), and there (2, 16, 32)" in told
    transformer = refused(settings(TRANSFORMER), OLD, old)
    assert "model.encoder.type is transformer, and there recurrent" in transformer
    # The same shapes, and yet another network.
    dot = settings({**LSTM, "attention": {"score": "dot"}})
    scaled = settings({**LSTM, "attention": {"score": "scaled_dot"}})
    kept = replace(old, model=dot["model"], weights=build(dot, OLD).get_weights())
    kept = replace(kept, names=[weight.path for weight in build(dot, OLD).weights])
    told = refused(scaled, OLD, kept)
    assert "model.attention.score.type is scaled_dot, and there dot" in told
    one_less = replace(old, names=old.names[:-1], weights=old.weights[:-1])
    assert "combine/kernel (32, 16) is not there" in refused(config, OLD, one_less)


@pytest.mark.parametrize(("here", "told"), [("sinusoidal", 1), ("none", 0)])
def test_a_captioner_of_before_has_no_positions(here, told):
    grid = {"type": "convolutional", "units": 8}
    found = [*warm_start._differing({"encoder": {**grid, "positions": here}}, {"encoder": grid})]
    assert found == [f"model.encoder.positions is {here}, and there none"] * told


def test_what_weights_do_not_depend_on_may_differ(simple):
    _, old, _ = simple
    config = settings({**LSTM, "dropout": 0.3})
    model = build(config, OLD, seed=2)
    warm_start.apply(model, TASK, config, OLD, old, "tiny@1")
    for ours, theirs in zip(model.get_weights(), old.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_models_that_cannot_be_read_are_refused(simple, tmp_path):
    config, old, folder = simple
    assert "tiny@1 is gone" in refused(config, OLD, path=str(tmp_path / "gone"))
    (tmp_path / "other").mkdir()
    assert "an older Regard" in refused(config, OLD, path=str(tmp_path / "other"))
    (tmp_path / "other/assets.extra").mkdir()
    whole = (folder / "assets.extra/training.npz").read_bytes()
    for content in (b"", b"no zip", whole[:100], whole):  # the last one has no weights beside it
        (tmp_path / "other/assets.extra/training.npz").write_bytes(content)
        assert "cannot be read" in refused(config, OLD, path=str(tmp_path / "other"))
    assert "is a model for pointer" in refused(config, OLD, replace(old, task="pointer"))


def test_a_model_that_has_changed_is_refused(simple, tmp_path):
    config, _, folder = simple
    assert "no longer those that its digest" in refused(config, OLD, digest="nonsense")
    saved = shutil.copytree(folder, tmp_path / "saved")
    (saved / "saved_model.pb").write_bytes(b"exported anew")
    assert "no longer those that its digest" in refused(config, OLD, path=str(saved))


def test_weights_that_are_not_finite_are_refused(tmp_path):
    config = settings(LSTM)
    model = build(config, OLD)
    model.weights[0].assign(np.full(model.weights[0].shape, np.nan))
    config["start"] = start_of(put(tmp_path / "saved", model, config, OLD))
    assert "of tiny@1 is not finite" in refused(config, OLD)


def test_tokenizers_that_are_not_there_or_broken_are_refused(simple):
    config, old, _ = simple
    one = replace(old, tokenizers={"source": OLD["source"]})
    assert "the tokenizer of target that tiny@1 keeps" in refused(config, OLD, one)
    junk = replace(old, tokenizers=dict.fromkeys(SIDES, b"junk"))
    assert "the tokenizer of source that tiny@1 keeps" in refused(config, OLD, junk)


def test_the_optimizer_begins_anew_with_other_pieces_and_says_so(ended, tmp_path, monkeypatch):
    config, _, _, _ = ended
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    model, report = begin(config, NEW, tmp_path)
    assert report["optimizer"] is False
    assert int(model.optimizer.iterations) == 0
    assert "the optimizer begins anew: the vocabulary has other pieces" in told.read_text()


def test_the_first_learning_rate_is_told(ended, tmp_path, monkeypatch):
    config, _, _, _ = ended
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    begin(config, OLD, tmp_path)
    assert "goes on after 60 steps, with a learning rate of 0.02" in told.read_text()


def test_an_optimizer_that_was_not_kept_begins_anew(simple, tmp_path, monkeypatch):
    _, old, folder = simple
    assert old.moments == []
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    config = settings(LSTM, warm_start={"optimizer": True}, accumulate=2)
    config["start"] = start_of(folder)
    model, report = begin(config, OLD, tmp_path)
    assert report["optimizer"] is False
    assert "begins anew" in told.read_text()
    assert int(model.optimizer.iterations) == 0


def test_updates_are_counted_and_not_batches(ended, tmp_path):
    config, _, _, _ = ended
    config = json.loads(json.dumps(config))
    config["training"]["accumulate"] = 3
    model, _ = begin(config, OLD, tmp_path)
    assert int(model.optimizer.iterations) == 60
    assert int(model.optimizer._iterations) == 180


def test_without_a_model_to_start_from_the_weights_stay(tmp_path, monkeypatch):
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    config = {**settings(LSTM), "start": {}}
    model, report = begin(config, OLD, tmp_path)
    for ours, theirs in zip(model.get_weights(), build(config, OLD, 2).get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert report == {}
    assert "no model to start from yet" in told.read_text()
    assert (
        warm_start.begin(
            model, TASK, {**config, "training": {"warm_start": None}}, OLD, Checkpoints("/nowhere")
        )
        == {}
    )


OTHERS = {
    "similarity": {"embedding": 8, "unknown": 7, "hidden": 6, "encoder": {"units": 4}},
    "captioning": {
        "image": {"height": 16, "width": 16},
        "encoder": {"channels": [4], "units": 8},
        "decoder": {"type": "bahdanau", "units": 8},
        "embedding": 8,
    },
    "pointer": {"width": 8, "encoder": {"type": "recurrent", "units": 4}, "decoder": {"units": 8}},
}


@pytest.mark.parametrize("task", OTHERS)
def test_every_task_hands_its_weights_on(task, tmp_path):
    """As its own export has them; a new vocabulary changes the rows of pieces alone."""
    config, texts = settings(OTHERS[task], task), tasks.describe(task).text_features
    old_pieces, new_pieces = (dict.fromkeys(texts, one["source"]) for one in (OLD, NEW))
    old = build(config, old_pieces)
    config["start"] = start_of(put(tmp_path / "saved", old, config, old_pieces))
    same, _ = begin(config, old_pieces, tmp_path / "same")
    for ours, theirs in zip(same.get_weights(), old.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    model, report = begin(config, new_pieces, tmp_path / "new")
    assert set(report["vocabularies"]) == {*texts}
    changed = {id(weight) for weight, *_ in tasks.get(task).by_piece(model)}
    for ours, theirs in zip(model.weights, old.weights, strict=True):
        if id(ours) not in changed:
            np.testing.assert_array_equal(ours, theirs)
    if task == "similarity":  # the rows of unknown words are no pieces, and stay what they are
        table, before = (np.asarray(one.encoder.embedding.table) for one in (model, old))
        np.testing.assert_array_equal(table[-7:], before[-7:])


@pytest.mark.parametrize("task", tasks.TASKS)
def test_every_export_holds_the_weights_in_their_order(task):
    config = settings({**OTHERS, "translation": LSTM, "summarisation": LSTM}[task], task)
    serialized = dict.fromkeys(tasks.describe(task).text_features, OLD["source"])
    model = build(config, serialized)
    tokenizers = {
        name: text.SentencepieceTokenizer(one, out_type=tf.int32, name=f"{name}_tokenizer")
        for name, one in serialized.items()
    }
    module = tasks.get(task).served(model, tokenizers, config).module
    assert [id(one) for one in module.weights] == [id(one.value) for one in model.weights]
