"""Searches: from a decoder's steps to hypotheses, in operations of every Keras backend."""

from regard.models.search.base import Hypotheses, Search
from regard.models.search.beam import BeamSearch
from regard.models.search.greedy import GreedySearch
from regard.models.search.sampling import SamplingSearch

SEARCHES: dict[str, type[Search]] = {
    "beam": BeamSearch,
    "greedy": GreedySearch,
    "sampling": SamplingSearch,
}

__all__ = ["SEARCHES", "BeamSearch", "GreedySearch", "Hypotheses", "SamplingSearch", "Search"]
