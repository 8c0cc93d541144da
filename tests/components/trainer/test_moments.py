"""Whether the optimizer's state of another training is of use, and in which order."""

import copy

import numpy as np
import pytest
import sentencepiece

from components.errors import UserError
from components.tokenizer_trainer.proto import parsed
from components.trainer.kept import Kept
from components.trainer.moments import moments_for
from components.trainer.optimizer import learning, moments_of
from components.trainer.pieces import passage
from tests.components.trainer.starting import KINDS, LSTM, NEW, OLD, TASK, build, settings

TURNED = 10


def reordered(model):
    """The same pieces; the order of the last ones, which are no signs, is turned round."""
    made = parsed(model)
    last = copy.deepcopy(list(made.pieces[-TURNED:]))
    del made.pieces[-TURNED:]
    made.pieces.extend(reversed(last))
    return made.SerializeToString()


def kept(moments):
    return Kept("translation", {}, [], [], OLD, updates=60, moments=moments)


def ways_to(model, pieces):
    way = passage(OLD["source"], pieces)
    return {id(weight): (axis, way) for weight, axis, _ in TASK.by_piece(model)}


def model_of(kind=LSTM, serialized=OLD, **training):
    return build(settings(kind, warm_start={"optimizer": True}, **training), serialized)


def drawn(model):
    random = np.random.default_rng(3)
    shapes = [tuple(one.shape) for one in moments_of(model.optimizer)]
    return [random.random(shape, dtype=np.float32) for shape in shapes]


def refused(model, moments):
    with pytest.raises(UserError) as caught:
        moments_for(model, kept(moments), "tiny@1", {})
    assert caught.value.where == "training.warm_start.optimizer"
    return caught.value.message


@pytest.mark.parametrize("kind", KINDS)
def test_rows_follow_their_pieces(kind):
    model = model_of(KINDS[kind])
    ways, moments = ways_to(model, reordered(OLD["source"])), drawn(model)
    found = moments_for(model, kept(moments), "tiny@1", ways)
    size = sentencepiece.SentencePieceProcessor(model_proto=OLD["source"]).get_piece_size()
    turned = [*range(size - TURNED), *reversed(range(size - TURNED, size))]
    moved = 0
    for ours, theirs, weight in zip(found, moments, 2 * learning(model.optimizer), strict=True):
        if id(weight) in ways:
            axis, _ = ways[id(weight)]
            theirs = np.take(theirs, [*turned, *range(size, theirs.shape[axis])], axis)
            moved += 1
        np.testing.assert_array_equal(ours, theirs)
    assert moved


def test_with_other_pieces_there_are_none():
    model = model_of(serialized=NEW)
    assert (
        moments_for(model, kept(drawn(model_of())), "tiny@1", ways_to(model, NEW["source"])) == []
    )
    assert moments_for(model, kept([]), "tiny@1", {}) == []


def test_other_weights_that_learn_are_refused():
    model = model_of()
    moments = drawn(model)
    assert "other weights learn than in the training of tiny@1" in refused(model, moments[:3])
    assert "other weights learn" in refused(model, [*moments[:-1], moments[-1][..., :-1]])


def test_a_schedule_that_has_ended_is_refused():
    cosine = {"type": "cosine", "warmup_steps": 0, "minimum": 0.0}
    model = model_of(schedule={**cosine, "steps": 60}, accumulate=2)
    told = refused(model, drawn(model))
    assert "come to its end with the 60 steps of tiny@1: the learning rate would be 0" in told


@pytest.mark.parametrize(
    "schedule",
    [
        {"type": "cosine", "steps": 90},
        {"type": "cosine", "steps": 60, "minimum": 0.001},
        {"type": "constant", "warmup_steps": 10**8},  # it has hardly begun
    ],
)
def test_a_schedule_that_has_something_before_it_goes_on(schedule):
    model = model_of(schedule=schedule)
    moments = drawn(model)
    assert len(moments_for(model, kept(moments), "tiny@1", {})) == len(moments)
