import keras
import numpy as np
import pytest

from regard.models.attention import SCORES, Pointer
from tests.models.attention import batches, reference
from tests.models.tensors import fill, gradients, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(13)
LENGTHS = [5, 3, 0]
MASK = np.arange(5) < np.array(LENGTHS)[:, None]


def inputs():
    query = RANDOM.normal(size=(3, 2, 4)).astype("float32")
    return query, RANDOM.normal(size=(3, 5, 4)).astype("float32")


def created(score="additive", clip=None, **options):
    pointer = Pointer(score, clip, **options)
    pointer.build((None, None, 4), (None, None, 4))
    return fill(pointer, RANDOM)


@pytest.mark.parametrize("clip", [None, 2.0])
@pytest.mark.parametrize("score", sorted(SCORES))
def test_equals_the_formula(score, clip):
    query, memory = inputs()
    pointer = created(score, clip)
    scores = batches.scores(score, query, memory, [numpy(w) for w in pointer.weights])
    result = numpy(pointer(query, memory, MASK))
    for b, t in np.ndindex(3, 2):
        true = scores[b, t, : LENGTHS[b]]
        expected = reference.pointer(true, clip) if len(true) else true
        assert_close(result[b, t, : LENGTHS[b]], expected)
        assert (result[b, t, LENGTHS[b] :] == 0).all()
    scores = scores if clip is None else clip * np.tanh(scores)
    logits = numpy(pointer.logits(query, pointer.prepare(memory, MASK)))
    valid = np.broadcast_to(MASK[:, None], logits.shape)
    assert_close(logits[valid], scores[valid])
    assert (logits[~valid] < -1e8).all()


def test_invalid_choices_have_no_probability():
    query, memory = inputs()
    pointer = created()
    choices = RANDOM.random((3, 2, 5)) < 0.5
    choices[0, 0] = False
    result = numpy(pointer(query, memory, MASK, choices))
    allowed = choices & MASK[:, None]
    assert (result[~allowed] == 0).all()
    assert_close(result.sum(-1), allowed.any(-1))
    free = numpy(pointer(query, memory, MASK))  # the ratios of those left stay
    retained = np.where(allowed, free, 0)
    total = retained.sum(-1, keepdims=True)
    assert_close(result * total, retained)


def test_without_a_mask_every_position_can_be_chosen():
    query, memory = inputs()
    assert (numpy(created()(query, memory)) > 0).all()


def test_gradients_are_finite_where_nothing_can_be_chosen():
    pointer = created(clip=10.0)

    def value(query, memory):
        return keras.ops.sum(pointer(query, memory, MASK)[..., 0])

    assert all(np.isfinite(x).all() for x in gradients(value, *inputs(), layer=pointer))


def test_low_precision_gives_float32_probabilities():
    query, memory = inputs()
    exact, rough = created(clip=10.0), created(clip=10.0, dtype="mixed_bfloat16")
    rough.set_weights(exact.get_weights())
    result = rough(query, memory, MASK)
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    assert_close(numpy(result), numpy(exact(query, memory, MASK)), "bfloat16", roundings=12)
