"""The answer pointer follows Wang and Jiang 2016, and the best span is spans exactly."""

import keras
import numpy as np
import pytest

from regard.models.layers.answer_pointer import AnswerPointer, best_spans
from tests.models.encoders.reference import gru_step
from tests.models.layers import reference
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(5)


def score_of(pointer):
    """The score of one query and all vectors of a memory."""

    def score(query, memory):
        keys = pointer.score.prepare(memory[None].astype("float32"))
        scores = pointer.score.match(query[None, None].astype("float32"), keys)
        return np.asarray(scores, "float64")[0, 0]

    return score


@pytest.mark.parametrize("hops", [0, 2])
def test_the_formulas_of_the_paper(hops):
    layer = AnswerPointer(units=3, hops=hops)
    question, memory = RANDOM.normal(size=(2, 4)), RANDOM.normal(size=(2, 5, 6))
    lengths = [5, 3]
    mask = np.arange(5) < np.array(lengths)[:, None]
    layer.build(question.shape, memory.shape)
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    logits = np.asarray(layer(question, memory, mask))
    start, bias = (np.asarray(w, "float64") for w in (layer.start.kernel, layer.start.bias))
    names = ("kernel", "recurrent_kernel", "bias", "reset_bias")
    matrices = [np.asarray(getattr(layer.cell, name), "float64").T for name in names]
    scores = [score_of(pointer) for pointer in layer.pointers]
    for row, length in enumerate(lengths):
        query = np.tanh(question[row] @ start + bias)
        distributions = reference.hops(
            query, memory[row, :length], scores, lambda c, q: gru_step(c, q, *matrices)
        )
        for step, expected in enumerate(distributions):
            weights = reference.softmax(logits[row, step, :length].astype("float64"))
            assert_close(weights, expected, roundings=1000)
            assert (logits[row, step, length:] < -1e8).all()


def spans(begin, end, max_length):
    """All spans with their scores, the best first."""
    length = len(begin)
    rows = [
        (i, j, begin[i] + end[j])
        for i in range(length)
        for j in range(i, min(i + max_length, length))
    ]
    return sorted(rows, key=lambda span: (-span[2], *span[:2]))


@pytest.mark.parametrize("max_length", [1, 2, 4, 20])
@pytest.mark.parametrize("length", [1, 2, 9])
def test_the_best_span_of_all(length, max_length):
    # Integers give ties, which the first begin and the first end win.
    begin, end = RANDOM.integers(-3, 0, (2, 6, length)).astype("float32")
    begins, ends, scores = (np.asarray(x) for x in best_spans(begin, end, max_length))
    for row in range(6):
        expected = spans(begin[row].tolist(), end[row].tolist(), max_length)[0]
        assert (begins[row, 0], ends[row, 0], scores[row, 0]) == expected


@pytest.mark.parametrize("length", [1, 2, 9])
def test_the_best_spans_in_their_order(length):
    begin, end = RANDOM.integers(-3, 0, (2, 6, length)).astype("float32")
    results = [np.asarray(x) for x in best_spans(begin, end, 3, count=8)]
    assert [x.shape for x in results] == [(6, 8)] * 3
    for row in range(6):
        expected = spans(begin[row].tolist(), end[row].tolist(), 3)[:8]
        best = list(zip(*(x[row].tolist() for x in results), strict=True))
        assert best[: len(expected)] == expected
        assert all(score < -1e9 for *_, score in best[len(expected) :])
        assert all(0 <= place < length for span in best for place in span[:2])
    empty = best_spans(begin[:0], end[:0], 3, count=8)
    assert [x.shape for x in empty] == [(0, 8)] * 3


def test_a_likely_end_before_a_likely_begin_is_no_answer():
    begin = np.log([[0.1, 0.1, 0.8]]).astype("float32")
    end = np.log([[0.9, 0.05, 0.05]]).astype("float32")
    begins, ends, _ = best_spans(begin, end, 3)
    assert (int(begins[0, 0]), int(ends[0, 0])) == (0, 0)


def test_settings():
    layer = AnswerPointer(units=3, hops=1, score="general")
    again = AnswerPointer.from_config(layer.get_config())
    assert again.settings == layer.settings
    assert [pointer.name for pointer in again.pointers] == ["hop_0", "begin", "end"]
    with pytest.raises(ValueError, match="Unknown score"):
        AnswerPointer(score="additiv")
    assert keras.saving.get_registered_name(AnswerPointer) == "regard>AnswerPointer"
