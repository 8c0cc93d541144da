"""Searches: from a decoder's steps to hypotheses, in core operations only."""

from models.search.base import Hypotheses, Search
from models.search.beam import BeamSearch
from models.search.greedy import GreedySearch
from models.search.sampling import SamplingSearch

SEARCHES: dict[str, type[Search]] = {
    "beam": BeamSearch,
    "greedy": GreedySearch,
    "sampling": SamplingSearch,
}

__all__ = ["SEARCHES", "BeamSearch", "GreedySearch", "Hypotheses", "SamplingSearch", "Search"]
