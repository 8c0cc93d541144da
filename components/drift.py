"""How far the training split of one run is from that of another, by their profiles alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SHOWN = 10
# A word or a length is compared by its own share where as many are expected in the smaller split;
# the other words count as one, neighbouring lengths as one. The divergence of what is rare is
# chance: with every word by itself it is 0.03 to 0.4 between random parts of one corpus, so it is
# 0.002 to 0.005.
_EXPECTED = 10


def drift(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What has changed from one profile to another, for each feature that is in both.

    Returns:
        By measure and feature, each with a ``value`` from 0 (the same) to 1:

        * ``drift_words``: Jensen-Shannon divergence of the words, to the base 2, and as
          ``examples`` those that add most to it, with their shares ``before`` and ``after``;
        * ``drift_oov``: by how much the ``rate`` of running words that were not there before
          exceeds what is ``expected`` of more text of the same kind and two standard errors, and
          as ``examples`` the most frequent ones with their ``count``; ``among`` says of how many
          most frequent words they are none, where the list was cut, else None;
        * ``drift_lengths``: Jensen-Shannon divergence of the lengths.
    """
    measured: dict[str, dict[str, Any]] = {"drift_words": {}, "drift_oov": {}, "drift_lengths": {}}
    for name, old, new in _shared(before, after):
        if old.get("total") and new.get("total"):
            measured["drift_words"][name] = _words(old, new)
            measured["drift_oov"][name] = _unknown(old, new)
        elif "total" in old and "total" in new and (old["total"] or new["total"]):
            measured["drift_words"][name] = _all_or_none(old, new)
            if new["total"]:
                frequent = [{"word": w, "count": c} for w, c in _frequent(new["words"])]
                measured["drift_oov"][name] = {"value": 1.0, "rate": 1.0, "expected": 0.0}
                measured["drift_oov"][name] |= {"among": None, "examples": frequent}
        if old["lengths"]["bounds"] == new["lengths"]["bounds"]:
            value = divergence(*_merged(old["lengths"]["counts"], new["lengths"]["counts"]))
            measured["drift_lengths"][name] = {"value": value}
    return measured


def uncompared(
    measured: Mapping[str, Mapping[str, Any]], after: Mapping[str, Any]
) -> dict[str, list[str]]:
    """The features of a profile that a measure of ``drift`` is of, and that it has left out.

    The profile before does not know them, or tells of them in another way.
    """
    features = after["features"]
    of_words = {name for name, feature in features.items() if feature.get("total")}
    found = {}
    for measure, done in measured.items():
        known = features.keys() if measure == "drift_lengths" else of_words
        found[measure] = sorted(known - done.keys())
    return found


def divergence(one: Sequence[float], other: Sequence[float]) -> float:
    """The Jensen-Shannon divergence to the base 2 of two lists of counts: 0 to 1.

    Two lists of nothing are the same; nothing is wholly different from something.
    """
    from scipy.spatial.distance import jensenshannon

    if not sum(one) or not sum(other):
        return float(bool(sum(one)) != bool(sum(other)))
    return float(jensenshannon(one, other, base=2)) ** 2


def _shared(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    for name, new in after["features"].items():
        if name in before["features"]:
            yield name, before["features"][name], new


def _words(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    smaller = min(old["total"], new["total"])
    shares = []
    for word in {**old["words"], **new["words"]}:
        was, now = (side["words"].get(word, 0) / side["total"] for side in (old, new))
        if (was + now) / 2 * smaller >= _EXPECTED:
            shares.append((word, was, now))
    befores, afters = [was for _, was, _ in shares], [now for _, _, now in shares]
    rest = [max(0.0, 1 - sum(kept)) for kept in (befores, afters)]
    shares.sort(key=lambda share: (-_part(*share[1:]), share[0]))
    return {
        "value": divergence([*befores, rest[0]], [*afters, rest[1]]),
        "examples": [
            {"word": word, "before": was, "after": now}
            for word, was, now in shares[:SHOWN]
            if was != now
        ],
    }


def _all_or_none(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Where one of the two has no word at all, nothing is the same."""
    side = new if new["total"] else old
    examples = []
    for word, count in _frequent(side["words"]):
        share = count / side["total"]
        was, now = (0.0, share) if side is new else (share, 0.0)
        examples.append({"word": word, "before": was, "after": now})
    return {"value": 1.0, "examples": examples}


def _frequent(words: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]


def _part(was: float, now: float) -> float:
    """What a word adds to the divergence, but for a factor."""
    return (was - now) ** 2 / (was + now)


def _merged(old: Sequence[int], new: Sequence[int]) -> tuple[list[int], list[int]]:
    """Two lists of counts where neighbours are one until there are enough of them to compare."""
    totals = max(sum(old), 1), max(sum(new), 1)

    def enough(was: int, now: int) -> bool:
        return (was / totals[0] + now / totals[1]) / 2 * min(totals) >= _EXPECTED

    merged = [(0, 0)]
    for was, now in zip(old, new, strict=True):
        if enough(*merged[-1]):
            merged.append((0, 0))
        merged[-1] = (merged[-1][0] + was, merged[-1][1] + now)
    if len(merged) > 1 and not enough(*merged[-1]):
        was, now = merged.pop()
        merged[-1] = (merged[-1][0] + was, merged[-1][1] + now)
    return [was for was, _ in merged], [now for _, now in merged]


def _unknown(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    counted, beyond = _counted(old, new)
    unknown = {word: count for word, count in counted.items() if word not in old["words"]}
    running = sum(counted.values()) + beyond
    rate = (sum(unknown.values()) + beyond) / max(running, 1)
    expected = _expected(old, new)
    error = math.sqrt(rate / max(running, 1) + expected / old["total"])
    return {
        "value": max(0.0, rate - expected - 2 * error),
        "rate": rate,
        "expected": expected,
        "among": None if old["complete"] else len(old["words"]),
        "examples": [{"word": word, "count": count} for word, count in _frequent(unknown)],
    }


def _counted(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Mapping[str, int], int]:
    """The new words to look for in the old list, and how many running words are in no list.

    Those are rare: they count as unknown. Where the old list is cut too, chance decides at the
    ends of both: then only the frequent half of the new one counts, of words that the smaller
    split has often enough.
    """
    if old["complete"] or new["complete"]:
        return new["words"], new["total"] - sum(new["words"].values())
    frequent = sorted(new["words"].items(), key=lambda item: (-item[1], item[0]))
    scale = min(old["total"], new["total"]) / new["total"]
    half = frequent[: len(frequent) // 2]
    return {word: count for word, count in half if count * scale >= _EXPECTED}, 0


def _expected(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """The share of running words that the old list would not have of more of the same text."""
    if old["complete"]:
        # Good's and Turing's estimate: so much of further text are words that were not met yet.
        return old["once"] / old["total"]
    # Of two cut lists, hardly a frequent word of the one is beyond the end of the other.
    return 1 - sum(old["words"].values()) / old["total"] if new["complete"] else 0.0
