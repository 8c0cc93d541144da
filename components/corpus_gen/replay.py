"""Which rows of older spans are trained on again, so that a model does not forget them.

``data.spans.replay`` is the share of the train split that they make up, whatever the number of
spans: the mixture keeps its proportions, and a training its length. They are those rows whose
content has the lowest hashes, of all older spans together. So the same rows give the same sample, a
larger share holds a smaller one, each row is as likely as any other, and while the older spans
grow, what is replayed of one of them only gets less.

The older spans are read twice, in constant memory: the hashes are counted in bins (``tally``), and
when the other rows are counted too, it is known up to which bin they fit (``bound``); then the rows
below it are written (``Replayed`` draws them).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import Group
from components.corpus_gen.splits import canonical
from components.words import counted

Draw = Callable[[Sequence[Any]], str | None]  # the split of a row with these values

_BITS = 16
_KEY = b"replay"  # other than that of a split, so that the one says nothing about the other


@dataclass(frozen=True)
class Replayed:
    """Draws the split of a row of an older span: ``train``, or none where it is left out.

    Args:
        split: what keeps rows from ``train``; None: nothing.
        bound: the first bin whose rows are left out.
    """

    split: Draw | None
    bound: int
    names = ("train",)

    def __call__(self, values: Sequence[Any]) -> str | None:
        """The split of a row with these values."""
        return "train" if _may_be(values, self.split) and _bin(values) < self.bound else None


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


def bound(tallies: Iterable[Mapping[int, int]], others: int, share: float) -> int:
    """The first bin whose rows are left out, so that those below make up their share.

    Rows of one bin, such as the same row in two spans, are replayed together or not at all: there
    are never more than the share asks for.

    Args:
        tallies: of all older spans.
        others: the number of all other rows of ``train``.
        share: what the replayed rows shall be of them all, 0..1.
    """
    total: Counter[int] = Counter()
    for one in tallies:
        total.update(one)
    room = wanted(others, share)
    for place in range(2**_BITS):
        room -= total[place]
        if room < 0:
            return place
    return 2**_BITS


def wanted(others: int, share: float) -> int:
    """How many rows make up a share beside so many others."""
    return round(others * share / (1 - share))


def replayed_rows(tally: Mapping[int, int], bound: int) -> int:
    """How many rows of a tally lie below a bound."""
    return sum(count for place, count in tally.items() if place < bound)


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
