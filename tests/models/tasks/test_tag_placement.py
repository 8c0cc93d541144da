"""Tags are placed where the attention says, by an exhaustive reference in NumPy."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.tasks.tag_placement import AlignedTokens, TagPlaces, place_tags

TAG = 100  # the id of the first tag; tag t opens with TAG + 2t and closes with TAG + 2t + 1


def tree(draw, size):
    """Random events of a source: ``(kind, tag, column)`` in their order; tags nest."""
    events, stack, tags, column = [], [], 0, 0
    while column < size or stack:
        choice = draw(st.integers(0, 4))
        if choice == 0 and tags < 5 and column < size:
            events.append(("open", tags, column))
            stack.append(tags)
            tags += 1
        elif choice == 1 and tags < 5:
            events.append(("single", tags, column))
            tags += 1
        elif (choice == 2 and stack) or column == size:
            if stack:
                events.append(("close", stack.pop(), column))
        else:
            events.append(("token", None, column))
            column += 1
    return events


@st.composite
def cases(draw):
    source, target = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    seed = draw(st.integers(0, 10**6))
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(source, 0.3), size=target)
    words = np.cumsum(random.integers(0, 2, target))
    marks = (random.random(target) < 0.3, random.random(source) < 0.3)
    return tree(draw, source), weights, words, marks


def places_of(events):
    order, bounds, ids = {}, {}, {}
    for place, (kind, tag, column) in enumerate(events):
        if kind == "token":
            continue
        if kind == "close":
            order[tag][1], bounds[tag][1] = place, column
        else:
            order[tag] = [place, place]
            bounds[tag] = [column, column + 1]
            ids[tag] = [TAG + 2 * tag, TAG + 2 * tag + (kind == "open")]
    tags = sorted(order, key=lambda tag: order[tag][0])
    values = [[each[tag] for tag in tags] for each in (order, bounds, ids)]
    return TagPlaces(*(tf.reshape(tf.constant(x, tf.int32), [1, -1, 2]) for x in values))


def parents_of(events):
    parents, stack = {}, []
    for kind, tag, _ in events:
        if kind in ("open", "single"):
            parents[tag] = stack[-1] if stack else None
        if kind == "open":
            stack.append(tag)
        elif kind == "close":
            stack.pop()
    return parents


def best_word(inside, words, free, marks):
    """The free part of the word with the largest sum; punctuation if nothing else is free."""
    inside = np.round(inside, 6)  # equal sums in float32 are equal here
    token = max(range(len(words)), key=lambda t: (free[t], not marks[t], inside[t], -t))
    start, end = token, token + 1
    while start > 0 and free[start - 1] and words[start - 1] == words[token]:
        start -= 1
    while end < len(words) and free[end] and words[end] == words[token]:
        end += 1
    return (start, end)


def run_of(inside, total, words, free, marks):
    """The best run of free tokens by trying all, and the best word if no gain is above 0."""
    best, length = (0.0, 0, 0), len(words)
    gains = 2 * inside - total
    gains = np.where(marks, np.minimum(gains, 0), gains)
    for end in range(1, length + 1):
        for start in range(end - 1, -1, -1):
            gain = sum(gains[start:end])
            if all(free[start:end]) and gain > best[0] + 1e-9:
                best = gain, start, end
    if best[0] > 0:
        return best[1:]
    return best_word(inside, words, free, marks)


def expected_runs(events, weights, words, marks):
    means = np.array([weights[words == word].mean(0) for word in words])
    total, runs, parents = means.sum(1), {}, parents_of(events)
    for (first, end), tag in zip(places_of(events).bounds.numpy()[0], sorted(parents), strict=True):
        kind = next(kind for kind, other, _ in events if other == tag)
        inside = means[:, first:end].sum(1) if first < weights.shape[1] else total * 0
        low, high = runs.get(parents[tag], (0, len(words)))
        siblings = [
            runs[t]
            for t in range(tag)
            if parents[t] == parents[tag] and ("open", t) in {e[:2] for e in events}
        ]
        free = [
            low <= t < high and not any(a <= t < b for a, b in siblings) for t in range(len(words))
        ]
        outside = marks[0] & ~marks[1][first:end].any()
        if not any(free) or max(np.where(free, inside, 0)) <= 1e-6:
            runs[tag] = (0, 0)
        elif kind == "single":
            runs[tag] = best_word(inside, words, free, outside)
        else:
            runs[tag] = run_of(inside, total, words, free, outside)
    return runs


def place(events, weights, words, marks=None):
    ids = np.arange(1, len(words) + 1)
    no_marks = np.zeros(len(words), bool), np.zeros(weights.shape[1], bool)
    marks, source_marks = marks or no_marks
    # The column of EOS, which has no weight.
    padded = np.pad(weights, [[0, 0], [0, 1]])[None].astype("float32")
    tokens = AlignedTokens(
        tf.constant(ids[None], tf.int32),
        tf.constant(words[None], tf.int32),
        tf.constant(marks[None]),
        tf.constant(np.pad(source_marks, [0, 1])[None]),
    )
    return place_tags(tokens, tf.constant(padded), places_of(events)).to_list()[0]


@settings(deadline=None, max_examples=60)
@given(cases())
def test_random_trees(case):
    events, weights, words, marks = case
    result = place(events, weights, words, marks)
    assert [token for token in result if token < TAG] == list(range(1, len(words) + 1))
    kinds = {tag: kind for kind, tag, _ in reversed(events) if tag is not None}
    needed = [TAG + 2 * t for t in kinds] + [TAG + 2 * t + 1 for t in kinds if kinds[t] == "open"]
    assert sorted(token for token in result if token >= TAG) == sorted(needed)
    parents, stack, starts, ends = parents_of(events), [], {}, {}
    position = 0
    for token in result:
        if token < TAG:
            position += 1
            continue
        tag, is_last = divmod(token - TAG, 2)
        if is_last:
            assert stack.pop() == tag
            ends[tag] = (starts[tag], position)
        else:
            assert parents[tag] is None or parents[tag] in stack
            if kinds[tag] == "open":
                assert parents[tag] == (stack[-1] if stack else None)
                stack.append(tag)
            starts[tag] = position
    assert not stack
    for tag, (start, end) in expected_runs(events, weights, words, marks).items():
        if start < end:
            assert starts[tag] == start
            assert kinds[tag] == "single" or ends[tag] == (start, end)


def test_the_parts_of_a_word_divided_by_a_mark_stay_in_their_parent():
    # A pair around the whole source leaves out a mark inside of a word of the output; the pair in
    # it takes a part of that word.
    events = [("open", 0, 0), ("token", None, 0), ("open", 1, 1), ("token", None, 1)]
    events += [("close", 1, 2), ("close", 0, 2)]
    marks = np.array([True, False]), np.array([False, False])
    weights = np.array([[0.6, 0.4], [0.6, 0.4]])
    assert place(events, weights, np.array([1, 1]), marks) == [1, 100, 102, 2, 103, 101]


def test_a_pair_follows_its_word():
    # "a <b>red</b> house" and "une maison rouge"
    events = [("token", None, 0), ("open", 0, 1), ("token", None, 1), ("close", 0, 2)]
    events += [("token", None, 2)]
    weights = np.array([[0.9, 0.05, 0.05], [0.1, 0.2, 0.7], [0.0, 0.9, 0.1]])
    assert place(events, weights, np.array([1, 2, 3])) == [1, 2, 100, 3, 101]


def test_all_tokens_of_a_word_are_enclosed():
    events = [("open", 0, 0), ("token", None, 0), ("close", 0, 1), ("token", None, 1)]
    weights = np.array([[0.9, 0.1], [0.4, 0.6], [0.1, 0.9]])
    assert place(events, weights, np.array([1, 1, 2])) == [100, 1, 2, 101, 3]


def test_a_pair_around_words_does_not_enclose_the_full_stop():
    # "a <b>dog</b> ." and "ein Hund .", and the same with "<b>dog .</b>"
    token = [("token", None, column) for column in range(3)]
    opens, closes = ("open", 0, 1), [("close", 0, column) for column in range(4)]
    weights = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.8, 0.2]])
    marks = np.array([False, False, True]), np.array([False, False, True])
    words = np.array([1, 2, 3])
    events = [token[0], opens, token[1], closes[2], token[2]]
    assert place(events, weights, words, marks) == [1, 100, 2, 101, 3]
    events = [token[0], opens, token[1], token[2], closes[3]]
    assert place(events, weights, words, marks) == [1, 100, 2, 3, 101]


def test_a_run_keeps_the_hyphen_between_its_words():
    events = [("open", 0, 0), ("token", None, 0), ("close", 0, 1), ("token", None, 1)]
    weights = np.array([[0.9, 0.1], [0.3, 0.7], [0.9, 0.1], [0.1, 0.9]])
    marks = np.array([False, True, False, False]), np.zeros(2, bool)
    assert place(events, weights, np.array([1, 2, 3, 4]), marks) == [100, 1, 2, 3, 101, 4]


def test_rows_without_tags_and_padding():
    places = places_of([("open", 0, 0), ("token", None, 0), ("close", 0, 1)])
    none = TagPlaces(places.order * 0 - 1, places.bounds * 0, places.ids * 0)
    both = TagPlaces(*(tf.concat(pair, 0) for pair in zip(places, none, strict=True)))
    ids = tf.constant([[5, -1], [6, 7]])
    marks = tf.zeros([2, 2], tf.bool)
    tokens = AlignedTokens(ids, tf.constant([[1, 1], [1, 2]]), marks, marks)
    weights = tf.constant([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]])
    result = place_tags(tokens, weights, both)
    assert result.to_list() == [[100, 5, 101], [6, 7]]
