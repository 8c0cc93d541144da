"""Every search with every rule, and the noise that sampling draws with."""

import numpy as np

from regard.models.noise import gumbel_noise
from regard.models.search import BeamSearch, GreedySearch, SamplingSearch
from tests.models.search.toy import Toy, arrays

SEARCHES = [
    GreedySearch(2),
    BeamSearch(3, 0.6, 0.3, 2, 2, 1.5),
    SamplingSearch(1.3, 4, 0.9, samples=3),
]


def outputs():
    toy = Toy()
    limits, prefix = np.array([5, 9, 7]), np.array([[0, 0], [4, 0], [5, 6]])
    for search in SEARCHES:
        options = {"minimums": np.array([1, 4, 2]), "prefix": prefix, "keys": np.array([3, 1, -2])}
        yield from arrays(search(toy.step, toy.state(), limits, **options))
        options = {
            "slots": np.array([[-1, -1, -1, -1, 1, 0, 2]], "int32"),
            "singles": np.array([[1], [0], [1]]),
            "pairs": np.array([[1], [1], [0]]),
        }
        yield from arrays(search(toy.step, toy.state(), limits, **options))
    yield gumbel_noise(3, np.arange(7)[:, None], np.arange(50))
