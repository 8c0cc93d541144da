"""Rows are carried as long as they have steps to take, and what they come to is in their place."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from regard.models.search.decode_loop import DROP_SHARE, decode_loop
from regard.models.seq2seq import Seq2Seq


class Countdown:
    """Each row counts up to its own number, in two prefixes that add different things."""

    def __init__(self, messages, carried=None):
        self.messages, self.carried = messages, carried

    def unfinished(self, position, rows, prefixes):
        return rows["count"] < self.messages["until"]

    def advance(self, position, rows, prefixes):
        going = self.unfinished(position, rows, prefixes)
        assert self.messages["shared"].shape == (1, 3)
        if self.carried is not None:
            self.carried.append(int(going.shape[0]))
        added = ops.reshape(prefixes["adds"], (-1, 2)) * ops.cast(going, "int32")[:, None]
        total = prefixes["total"] + ops.reshape(added, (-1,))
        rows = {"count": rows["count"] + ops.cast(going, "int32"), "totals": rows["totals"] + added}
        return rows, {**prefixes, "total": total}


def count(until, carried=None):
    until = ops.convert_to_tensor(until, dtype="int32")
    batch = ops.shape(until)[0]
    prefixes = {
        "adds": ops.arange(batch * 2, dtype="int32"),
        "total": ops.zeros(batch * 2, "int32"),
    }
    rows = {"count": ops.zeros_like(until), "totals": ops.zeros((batch, 2), "int32")}

    def result(rows, prefixes):
        return rows, ops.reshape(prefixes["total"], (-1, 2))

    def begin(messages):
        return Countdown(messages, carried)

    messages = {"shared": ops.ones((1, 3)), "until": until}
    return keras.tree.map_structure(
        ops.convert_to_numpy, decode_loop(begin, messages, rows, prefixes, 2, result)
    )


@pytest.mark.parametrize(
    "until", [[3, 1, 4, 1, 5, 9, 2, 6], [0, 0, 2], [7], [0], [], [2, 2, 2], list(range(40))]
)
def test_every_row_comes_to_its_own_end(until):
    rows, totals = count(until)
    np.testing.assert_array_equal(rows["count"], until)
    expected = np.arange(2 * len(until)).reshape(-1, 2) * np.array(until, int)[:, None]
    np.testing.assert_array_equal(rows["totals"], expected)
    np.testing.assert_array_equal(totals, expected)


def test_rows_that_are_done_are_left_behind():
    until, carried = np.arange(1, 101), []
    count(until, carried)
    # Every row takes its steps, and between two cuts a few that are done are carried along.
    assert len(carried) == 100
    assert until.sum() <= sum(carried) <= until.sum() / (1 - DROP_SHARE)
    assert sum(carried) < 0.7 * 100 * 100


def test_a_graph_may_know_the_number_of_rows_or_not():
    for until, rows in (([3, 1, 4, 1, 5], None), ([3, 1, 4, 1, 5], 5), ([3], None), ([3], 1)):

        @tf.function(input_signature=[tf.TensorSpec([rows], tf.int32)])
        def graph(until):
            zeros = {
                "count": until * 0,
                "totals": (until * 0)[:, None] + tf.zeros((1, 2), tf.int32),
            }
            prefixes = {"adds": tf.range(tf.shape(until)[0] * 2), "total": tf.repeat(until * 0, 2)}
            desired = lambda rows, prefixes: tf.reshape(prefixes["total"], [-1, 2])  # noqa: E731
            messages = {"shared": tf.ones([1, 3]), "until": until}
            return decode_loop(Countdown, messages, zeros, prefixes, 2, desired)

        np.testing.assert_array_equal(graph(tf.constant(until, tf.int32)), count(until)[1])


@pytest.mark.parametrize(
    ("encoder", "decoder", "score"),
    [
        ("transformer", "transformer", "scaled_dot"),
        ("transformer", "luong", "general"),
        ("recurrent", "luong", "location"),
        ("recurrent", "bahdanau", "additive"),
    ],
)
def test_what_decoders_carry_has_a_row_for_each_row(encoder, decoder, score):
    """Without this no row could be left behind; but in the memory may be what is one for all."""
    transformer = {"layers": 1, "heads": 2, "feed_forward": 8}
    options = {"transformer": transformer, "recurrent": {"units": 8}}.get
    keras.utils.set_random_seed(1)
    encode = ENCODERS[encoder](9, embedding=8, **options(encoder))
    decode = DECODERS[decoder](
        9,
        encode.depth,
        encode.final_depth,
        embedding=8,
        attention={"score": score},
        **(options(decoder) or {"units": 8}),
    )
    model = Seq2Seq(encode, decode)
    model.build()
    for batch in (2, 3):
        state = decode.start(model.encode(np.full((batch, 4), 5)), 6, 2)
        memory = state.pop("memory")
        assert all(x.shape[0] == batch for x in keras.tree.flatten(state))
        shared = [x for x in keras.tree.flatten(memory) if x.shape[0] != batch]
        assert [x.shape[0] for x in shared] == [1] * (score == "location")
