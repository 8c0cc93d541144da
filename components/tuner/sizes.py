"""How much work a search is, known before it begins."""

from __future__ import annotations

import math
from collections.abc import Iterator


def hyperband_trials(epochs: int, factor: int, iterations: int) -> int:
    """The trials of Hyperband (Li et al. 2018), those that go on with another one counted too.

    Args:
        epochs: of the longest trials.
        factor: of a bracket's trials one in so many goes on, for so many times the epochs.
        iterations: how often it is done over.
    """
    return iterations * sum(count for count, _ in _rounds(epochs, factor))


def hyperband_epochs(epochs: int, factor: int, iterations: int) -> int:
    """The epochs that all its trials have together; one that goes on has only what is added."""
    return iterations * sum(count * added for count, added in _rounds(epochs, factor))


def _rounds(epochs: int, factor: int) -> Iterator[tuple[int, int]]:
    """The trials of each round of each bracket, and the epochs that they add."""
    brackets, left = 0, float(epochs)
    while left >= 1:  # as KerasTuner counts them
        left, brackets = left / factor, brackets + 1
    last = math.ceil(1 + math.log(epochs, factor))
    for bracket in reversed(range(brackets)):
        before = 0
        for number in range(bracket + 1):
            rest = factor ** (bracket - number)
            until = math.ceil(epochs / rest)
            yield math.ceil(last / (bracket + 1) * rest), until - before
            before = until
