"""Which rows of older spans are trained on again, so that a model does not forget them.

``data.spans.replay`` is the share of the train split that they make up, whatever the number of
spans: the mixture keeps its proportions, and a training its length. They are those rows whose
content has the lowest hashes, of all older spans together. So the same rows give the same sample, a
larger share holds a smaller one, each row is as likely as any other, and while the older spans
grow, what is replayed of one of them only gets less.

The older spans are read twice, in constant memory: the hashes are counted in bins (``tally``), and
when the other rows are counted too, it is known up to which bin they fit, and how many rows of the
last one (``parts``); then those are written (``Replayed`` draws them).

A row that stands there many times would fill the sample alone, or not be in it, as its hash has it.
So of a bin that is much fuller than the others its fair part is taken, wherever it lies.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import Group
from components.corpus_gen.splits import canonical
from components.words import counted

Draw = Callable[[Sequence[Any]], str | None]  # the split of a row with these values
Key = TypeVar("Key")

_BITS = 16
# A bin is fuller than chance makes it with this many times the mean, and some rows more.
_FULL, _MORE = 8, 16
_KEY = b"replay"  # other than that of a split, so that the one says nothing about the other


@dataclass(frozen=True)
class Part:
    """What is taken of a group: all rows below a bin, but of some bins only a number of rows.

    Args:
        bound: the first bin whose rows are left out.
        limits: how many rows are taken of these bins, below the bound or not.
    """

    bound: int
    limits: Mapping[int, int]

    def of(self, place: int, count: int) -> int:
        """How many of the rows in a bin are taken."""
        return min(count, self.limits.get(place, count if place < self.bound else 0))

    def rows(self, tally: Mapping[int, int]) -> int:
        """How many rows of a tally are taken."""
        return sum(self.of(place, count) for place, count in tally.items())


@dataclass
class Replayed:
    """Draws the split of a row of an older span: ``train``, or none where it is left out.

    It counts, so each reading of a group needs its own.

    Args:
        split: what keeps rows from ``train``; None: nothing.
        part: what is taken of the group.
    """

    split: Draw | None
    part: Part
    names = ("train",)
    _seen: Counter[int] = field(default_factory=Counter, init=False)

    def __call__(self, values: Sequence[Any]) -> str | None:
        """The split of a row with these values."""
        if not _may_be(values, self.split):
            return None
        place = _bin(values)
        if place not in self.part.limits:
            return "train" if place < self.part.bound else None
        self._seen[place] += 1
        return "train" if self._seen[place] <= self.part.limits[place] else None


def tally(
    group: Group, data: Mapping[str, Any], split: Draw | None, problems: Problems
) -> Counter[int]:
    """How many rows of a group may be replayed, by the bin of their hash.

    Args:
        group: files of an older span.
        data: the ``data`` section.
        split: what keeps rows from ``train``; None: nothing.
        problems: takes what is wrong with the rows, and with a file that cannot be read on.
    """
    found: Counter[int] = Counter()
    try:
        for _, values in read(group, Options.of(data), problems, Images(data)):
            if _may_be(values, split):
                found[_bin(values)] += 1
    except Broken as broken:
        problems.broken.append(broken.problem)
    return found


def parts(tallies: Mapping[Key, Mapping[int, int]], others: int, share: float) -> dict[Key, Part]:
    """What is taken of each group: together as many rows as the share asks for, or all there are.

    Args:
        tallies: of all groups of older spans, in their order.
        others: the number of all other rows of ``train``.
        share: what the replayed rows shall be of them all, 0..1.
    """
    total: Counter[int] = Counter()
    for one in tallies.values():
        total.update(one)
    available, room = total.total(), wanted(others, share)
    if room >= available:
        return {key: Part(2**_BITS, {}) for key in tallies}
    fair, full = room / available, _FULL * available / 2**_BITS + _MORE
    limits: dict[int, int] = {}
    for place, count in sorted(total.items()):
        if count > full:
            limits[place] = min(room, math.ceil(count * fair))
            room -= limits[place]
    bound = 0
    for bound, count in sorted(total.items()):
        if bound not in limits:
            if count > room:
                limits[bound] = room
                break
            room -= count
    divided = {place: _divided(limit, tallies, place) for place, limit in limits.items()}
    return {
        key: Part(bound, {place: rows[i] for place, rows in divided.items()})
        for i, key in enumerate(tallies)
    }


def _divided(limit: int, tallies: Mapping[Any, Mapping[int, int]], place: int) -> list[int]:
    """What each group gives of the rows that are taken of a bin, by how many it has there."""
    edges = [0, *accumulate(tally.get(place, 0) for tally in tallies.values())]
    return [limit * end // edges[-1] - limit * start // edges[-1] for start, end in pairwise(edges)]


def wanted(others: int, share: float) -> int:
    """How many rows make up a share beside so many others."""
    return round(others * share / (1 - share))


def too_few(spans: Sequence[Mapping[str, Any]], rows: Mapping[str, int], share: float) -> list[str]:
    """A sentence where the older spans have not as many rows as their share asks for.

    Args:
        spans: all that were taken, with their ``rows``; those that are ``replayed`` also with the
            number of rows that are ``available``.
        rows: of each split.
        share: of ``data.spans.replay``.
    """
    old = [one for one in spans if one.get("replayed")]
    there = sum(one["available"] for one in old)
    asked = wanted(rows["train"] - sum(one["rows"]["train"] for one in old), share)
    if not old or there >= asked:
        return []
    told = f"data.spans.replay: {share:g} asks for {counted(asked, 'row')} of older spans"
    return [f"{told}; there are {there:,}, and all of them are replayed"]


def _may_be(values: Sequence[Any], split: Draw | None) -> bool:
    return split is None or split(values) == "train"


def _bin(values: Sequence[Any]) -> int:
    """The place of a row among all rows, by its content."""
    content = "\x1f".join(canonical(value) or "" for value in values)
    digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8, key=_KEY)
    return int.from_bytes(digest.digest(), "big") >> (64 - _BITS)
