"""Placement of tags in an output by its attention to the source."""

from typing import NamedTuple

import tensorflow as tf

_LAST = tf.int64.max
# Smaller sums of attention are errors of rounding.
_LEAST_SUM = 1e-6


class TagPlaces(NamedTuple):
    """Pairs of tags and single spans of sources, in their order; padded with ``order`` -1.

    A pair encloses the tokens of its source from ``first`` to before ``end``. A single span has
    the token after it, its ``end`` is ``first + 1``.

    Attributes:
        order: ``[batch, n, 2]``, where the first and the last tag are among all tags and tokens of
            the source; of single spans twice the same.
        bounds: ``[batch, n, 2]``, ``first`` and ``end``.
        ids: ``[batch, n, 2]``, the ids of the first and of the last tag in the output.
    """

    order: tf.Tensor
    bounds: tf.Tensor
    ids: tf.Tensor

    @property
    def is_single(self) -> tf.Tensor:
        """Which spans are no pairs, ``[batch, n]``."""
        return self.order[:, :, 0] == self.order[:, :, 1]


class AlignedTokens(NamedTuple):
    """The tokens of outputs ``[batch, target]``, and of their sources ``[batch, source]``.

    Attributes:
        ids: The tokens of the outputs, -1 for padding.
        words: The number of the word of each token of an output, not falling.
        marks: Which tokens of an output are punctuation.
        source_marks: Which tokens of a source are punctuation.
    """

    ids: tf.Tensor
    words: tf.Tensor
    marks: tf.Tensor
    source_marks: tf.Tensor


def place_tags(tokens: AlignedTokens, weights: tf.Tensor, places: TagPlaces) -> tf.RaggedTensor:
    """Return the tokens of outputs with the tags of their sources.

    A pair encloses the run of words whose attention to the enclosed tokens of the source exceeds
    that to all others by the largest sum; words with most attention to them if there is none. A
    pair keeps its parent and shares no word with other pairs of the same parent. A single span
    precedes the word that attends most to the token after it. Punctuation neither begins nor ends a
    run if the source encloses none. What finds no words is at the end of its parent.

    Args:
        tokens: The tokens.
        weights: ``[batch, target, source]``, the attention; 0 for EOS and padding of the source.
        places: The tags.
    """
    ids = tokens.ids
    words = tf.where(ids >= 0, tokens.words, tf.shape(ids)[1])  # padding is one word
    tokens = tokens._replace(words=words)
    parents, depths, is_ancestor = _tree(places)
    runs = _find_runs(tokens, _word_means(weights, words), places, parents)
    is_empty = runs[:, :, 0] >= runs[:, :, 1]
    length = tf.reduce_sum(tf.cast(ids >= 0, tf.int32), 1)[:, None]
    # An empty pair is before the last tag of the innermost pair around it that is not empty.
    around = is_ancestor & ~is_empty[:, :, None]
    depth_around = tf.reduce_max(tf.where(around, depths[:, :, None], -1), axis=1)
    is_around = around & (depths[:, :, None] == depth_around[:, None])
    ends = tf.reduce_max(tf.where(is_around, runs[:, :, 1:], -1), axis=1)
    ends = tf.where(ends < 0, length, ends)
    nested = -2 * depth_around - 1
    first = _keys(
        tf.where(is_empty, ends, runs[:, :, 0]),
        tf.where(is_empty, 0, 1),
        tf.where(is_empty, nested, 0),
        places.order[:, :, 0],
    )
    last = _keys(
        tf.where(is_empty, ends, runs[:, :, 1]),
        tf.zeros_like(ends),
        tf.where(is_empty, nested, -2 * depths),
        places.order[:, :, 1],
    )
    exists = places.order[:, :, 0] >= 0
    here = tf.range(tf.shape(ids)[1])[None] + tf.zeros_like(ids)
    between = _keys(here, here * 0 + 2, here * 0, here * 0)
    keys = tf.concat(
        [
            tf.where(ids >= 0, between, _LAST),
            tf.where(exists, first, _LAST),
            tf.where(exists & ~places.is_single, last, _LAST),
        ],
        axis=1,
    )
    every = tf.concat([ids, places.ids[:, :, 0], places.ids[:, :, 1]], axis=1)
    order = tf.argsort(keys, axis=1, stable=True)
    sorted_ids = tf.gather(every, order, batch_dims=1)
    counts = tf.reduce_sum(tf.cast(keys < _LAST, tf.int32), axis=1)
    return tf.RaggedTensor.from_tensor(sorted_ids, lengths=counts)


def _keys(place: tf.Tensor, group: tf.Tensor, depth: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    """Return numbers by which tags and tokens are sorted: first by place, then by group, ..."""
    place, group, depth, order = (tf.cast(x, tf.int64) for x in (place, group, depth, order))
    return ((place * 4 + group) * 512 + depth + 256) * 2**24 + order


def _tree(places: TagPlaces) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return the parent ``[batch, n]`` (-1: none), the depth, and who is an ancestor of whom.

    The last one is ``[batch, ancestor, descendant]``.
    """
    first, last = places.order[:, :, 0], places.order[:, :, 1]
    starts_before = first[:, :, None] < first[:, None]
    is_ancestor = starts_before & (last[:, :, None] > first[:, None]) & (first >= 0)[:, :, None]
    depths = tf.reduce_sum(tf.cast(is_ancestor, tf.int32), axis=1)
    # Spans are sorted, so the innermost ancestor is the last one.
    numbers = tf.range(tf.shape(first)[1])[None, :, None]
    parents = tf.reduce_max(tf.where(is_ancestor, numbers, -1), axis=1)
    return parents, depths, is_ancestor


def _word_means(weights: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
    """Return the mean of the weights of each word, at all of its tokens."""
    same = tf.cast(words[:, :, None] == words[:, None], weights.dtype)
    return tf.linalg.matmul(same / tf.reduce_sum(same, axis=2, keepdims=True), weights)


def _find_runs(
    tokens: AlignedTokens, weights: tf.Tensor, places: TagPlaces, parents: tf.Tensor
) -> tf.Tensor:
    """Return the first token of each span and the one after it, ``[batch, n, 2]``."""
    is_token, words = tokens.ids >= 0, tokens.words
    columns = tf.range(tf.shape(weights)[1])[None]
    sums = tf.pad(tf.cumsum(weights, axis=2), [[0, 0], [0, 0], [1, 0]])
    mark_counts = tf.pad(tf.cumsum(tf.cast(tokens.source_marks, tf.int32), 1), [[0, 0], [1, 0]])
    total = sums[:, :, -1]
    is_single = places.is_single
    numbers = tf.range(tf.shape(parents)[1])[None]

    def step(k: tf.Tensor, runs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        bounds = tf.unstack(places.bounds[:, k], axis=1)
        low, high = (tf.gather(sums, bound, axis=2, batch_dims=1) for bound in bounds)
        inside = high - low
        first, end = (tf.gather(mark_counts, bound, axis=1, batch_dims=1) for bound in bounds)
        is_outside = tokens.marks & (first == end)[:, None]
        parent = parents[:, k]
        around = tf.gather(runs, tf.maximum(parent, 0), batch_dims=1)
        is_free = is_token & ((parent < 0)[:, None] | _within(around[:, None], columns)[:, 0])
        is_sibling = (parents == parent[:, None]) & (numbers < k) & ~is_single
        is_used = tf.reduce_any(_within(runs, columns) & is_sibling[:, :, None], axis=1)
        is_free &= ~is_used
        gains = 2 * inside - total
        gains = tf.where(is_outside, tf.minimum(gains, 0.0), gains)
        run = _best_run(tf.where(is_free, gains, -1e3))
        # A word that is punctuation only if there is no other one.
        ranks = tf.where(is_outside, inside - 2.0, inside)
        best = tf.argmax(tf.where(is_free, ranks, -3.0), axis=1, output_type=tf.int32)
        same_word = words == tf.gather(words, best, batch_dims=1)[:, None]
        one = _run_around(best, same_word & is_free)
        has_run = (run[:, 0] < run[:, 1]) & ~is_single[:, k]
        run = tf.where(has_run[:, None], run, one)
        has_words = tf.reduce_max(tf.where(is_free, inside, 0.0), axis=1) > _LEAST_SUM
        run = tf.where(has_words[:, None], run, 0)
        return k + 1, tf.where((numbers == k)[:, :, None], run[:, None], runs)

    start = tf.zeros_like(places.bounds)
    loop = (lambda k, _: k < tf.shape(parents)[1], step, (tf.constant(0), start))
    return tf.while_loop(*loop)[1]


def _run_around(column: tf.Tensor, is_part: tf.Tensor) -> tf.Tensor:
    """Return the longest run of parts ``[batch, n]`` that contains a column ``[batch]``.

    Returns:
        The first column, and the one after the last, ``[batch, 2]``.
    """
    columns, column = tf.range(tf.shape(is_part)[1])[None], column[:, None]
    starts = tf.where(~is_part & (columns < column), columns + 1, 0)
    ends = tf.where(~is_part & (columns > column), columns, tf.shape(is_part)[1])
    return tf.stack([tf.reduce_max(starts, axis=1), tf.reduce_min(ends, axis=1)], axis=1)


def _within(runs: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Return which columns are in runs ``[batch, n, 2]``, as ``[batch, n, columns]``."""
    return (columns[:, None] >= runs[:, :, :1]) & (columns[:, None] < runs[:, :, 1:])


def _best_run(gains: tf.Tensor) -> tf.Tensor:
    """Return the run with the largest sum of gains ``[batch, n]``, the shortest of equal ones.

    Returns:
        The first column, and the one after the last, ``[batch, 2]``; equal if no gain is above 0.
    """
    sums = tf.pad(tf.cumsum(tf.cast(gains, tf.float64), axis=1), [[0, 0], [1, 0]])
    # The lowest sum before each column, by doubling.
    lowest, width = sums, tf.constant(1)
    size = tf.shape(sums)[1]

    def double(lowest: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shifted = tf.pad(lowest, [[0, 0], [width, 0]], constant_values=1e9)[:, :size]
        return tf.minimum(lowest, shifted), width * 2

    lowest, _ = tf.while_loop(lambda _, width: width < size, double, (lowest, width))
    end = tf.argmax(sums - lowest, axis=1, output_type=tf.int32)
    columns = tf.range(size)[None]
    value = tf.gather(lowest, end, batch_dims=1)[:, None]
    is_start = (columns <= end[:, None]) & (sums <= value)
    return tf.stack([tf.reduce_max(tf.where(is_start, columns, 0), axis=1), end], axis=1)
