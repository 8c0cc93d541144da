"""Pairs of tags in texts."""

import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.tasks.span_finding import match_pairs


def partners(tags):
    """The pairs of a sequence of tags, by a stack."""
    result, stack = [-1] * len(tags), []
    for place, (sign, name) in enumerate(tags):
        if sign > 0:
            stack.append(place)
        elif any(tags[other][1] == name for other in stack):
            while tags[(other := stack.pop())][1] != name:
                pass
            result[place], result[other] = other, place
    return result


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 2)), min_size=1, max_size=12))
def test_pairs_of_tags(tags):
    signs, names = (tf.constant([[tag[i] for tag in tags]]) for i in (0, 1))
    assert match_pairs(signs, names).numpy()[0].tolist() == partners(tags)
