"""Profiles of training splits, their words and lengths, and the drift from one to another.

ExampleValidator writes the profile of the training split as ``profile.json``. The Pusher stores it
with the model, so that later data can be compared with it. Nothing here needs TensorFlow.
"""

import math
import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter
from typing_extensions import NotRequired, TypedDict

from regard.core.errors import UserError

PROFILE_FILE = "profile.json"
MAX_WORDS = 50_000  # words that a profile lists for a feature; it only counts the others
MAX_EXAMPLES = 10
# Upper bounds of lengths from 5 to 5,000, each a quarter larger than the one before.
BOUNDS = tuple(round(5 * 1000 ** (step / 30)) for step in range(31))
# A word or a length is compared separately if the smaller split is expected to have it this often.
# The other words count as one, neighbouring lengths are merged: the divergence of rare words is
# noise, 0.03 to 0.4 between random parts of one corpus instead of 0.002 to 0.005.
_MIN_EXPECTED = 10


class LengthProfile(TypedDict):
    """Lengths: how many are up to each of ``bounds``, then how many are longer."""

    unit: str | None
    bounds: list[int]
    counts: list[int]


class WordProfile(TypedDict):
    """Words: the number of all, of different ones and of those that occur once, and frequent ones.

    ``complete`` says whether ``words`` lists all of them.
    """

    total: int
    distinct: int
    once: int
    words: dict[str, int]
    complete: bool


class FeatureProfile(TypedDict):
    """Lengths of a feature, and of text also the keys of ``WordProfile``."""

    lengths: LengthProfile
    total: NotRequired[int]
    distinct: NotRequired[int]
    once: NotRequired[int]
    words: NotRequired[dict[str, int]]
    complete: NotRequired[bool]


class Profile(TypedDict):
    """The number of rows of a training split, and each of its features."""

    rows: int
    features: dict[str, FeatureProfile]


class WordChange(TypedDict, total=False):
    """A word with its shares ``before`` and ``after``, or its ``count``."""

    word: str
    before: float
    after: float
    count: int


class Drift(TypedDict, total=False):
    """The drift of one feature; only ``value`` is always there.

    Attributes:
        value: the divergence, from 0 (the same) to 1.
        rate: the share of running words that are new.
        expected: the share that more text of the same kind would have.
        listed: the number of most frequent words that the new words are none of; None if the
            earlier profile lists all words.
        examples: the words that contribute most.
    """

    value: float
    rate: float
    expected: float
    listed: int | None
    examples: list[WordChange]


def histogram(lengths: Mapping[int, int]) -> list[int]:
    """Return how many lengths are up to each of ``BOUNDS``, then how many are longer.

    Args:
        lengths: the number of values of each length.
    """
    counts = [0] * (len(BOUNDS) + 1)
    for length, count in lengths.items():
        counts[bisect_left(BOUNDS, length)] += count
    return counts


def read_profile(path: str | os.PathLike[str], remedy: str) -> Profile:
    """Read a profile.

    Args:
        path: the file.
        remedy: what the user can do if it is not a profile.

    Raises:
        UserError: it cannot be read, or is not a profile.
    """
    try:
        profile = TypeAdapter(Profile).validate_json(Path(path).read_bytes())
        for feature in profile["features"].values():
            if len(feature) > 1:  # all keys of its words, or none
                TypeAdapter(WordProfile).validate_python(feature)
        return profile
    except (OSError, ValueError) as error:
        message = f"the profile cannot be read: {str(error).splitlines()[0]}"
        raise UserError(message, where=str(path), remedy=remedy) from error


def measure_drift(before: Profile, after: Profile) -> dict[str, dict[str, Drift]]:
    """Return what changed from one profile to another, for each feature that is in both.

    Returns:
        By measure and feature:

        * ``drift_words``: Jensen-Shannon divergence of the words, base 2;
        * ``drift_oov``: the share of running words that are new, less the share that more text of
          the same kind would have and two standard errors;
        * ``drift_lengths``: Jensen-Shannon divergence of the lengths.
    """
    measured: dict[str, dict[str, Drift]] = {
        "drift_words": {},
        "drift_oov": {},
        "drift_lengths": {},
    }
    for name, new in after["features"].items():
        if name not in before["features"]:
            continue
        old = before["features"][name]
        if "total" in old and "total" in new and (old["total"] or new["total"]):
            measured["drift_words"][name] = _word_drift(_words(old), _words(new))
            if new["total"]:
                measured["drift_oov"][name] = _oov_drift(_words(old), _words(new))
        if old["lengths"]["bounds"] == new["lengths"]["bounds"]:
            counts = _merge_rare(old["lengths"]["counts"], new["lengths"]["counts"])
            measured["drift_lengths"][name] = {"value": divergence(*counts)}
    return measured


def missing_features(
    measured: Mapping[str, Mapping[str, Drift]], after: Profile
) -> dict[str, list[str]]:
    """Return the features that each measure of ``measure_drift`` lacks.

    The earlier profile does not have them, or has them in another form.
    """
    features = after["features"]
    with_words = {name for name, feature in features.items() if feature.get("total")}
    return {
        measure: sorted(
            (features.keys() if measure == "drift_lengths" else with_words) - values.keys()
        )
        for measure, values in measured.items()
    }


def divergence(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence, base 2, of two lists of counts: 0 to 1.

    Two empty distributions are the same; an empty one differs completely from any other.
    """
    from scipy.spatial.distance import jensenshannon

    if not sum(first) or not sum(second):
        return float(bool(sum(first)) != bool(sum(second)))
    return float(jensenshannon(first, second, base=2)) ** 2


def _words(feature: FeatureProfile) -> WordProfile:
    return feature  # type: ignore[return-value]


def _word_drift(old: WordProfile, new: WordProfile) -> Drift:
    smaller = min(old["total"], new["total"])
    word_shares = []
    for word in {**old["words"], **new["words"]}:
        before, after = (side["words"].get(word, 0) / max(side["total"], 1) for side in (old, new))
        # If one side is empty, all words of the other one have changed.
        if not smaller or (before + after) / 2 * smaller >= _MIN_EXPECTED:
            word_shares.append((word, before, after))
    befores = [before for _, before, _ in word_shares]
    afters = [after for _, _, after in word_shares]
    rest = [max(0.0, 1 - sum(common)) for common in (befores, afters)]
    word_shares.sort(key=lambda share: (-_contribution(*share[1:]), share[0]))
    return {
        "value": divergence([*befores, rest[0]], [*afters, rest[1]]) if smaller else 1.0,
        "examples": [
            {"word": word, "before": before, "after": after}
            for word, before, after in word_shares[:MAX_EXAMPLES]
            if before != after
        ],
    }


def _by_frequency(words: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))


def _contribution(before: float, after: float) -> float:
    """Return the contribution of a word to the divergence, up to a factor."""
    return (before - after) ** 2 / (before + after)


def _merge_rare(old: Sequence[int], new: Sequence[int]) -> tuple[list[int], list[int]]:
    """Merge neighbours of two lists of counts until there are enough of them to compare."""
    totals = max(sum(old), 1), max(sum(new), 1)

    def is_frequent(before: int, after: int) -> bool:
        return (before / totals[0] + after / totals[1]) / 2 * min(totals) >= _MIN_EXPECTED

    merged = [(0, 0)]
    for before, after in zip(old, new, strict=True):
        if is_frequent(*merged[-1]):
            merged.append((0, 0))
        merged[-1] = (merged[-1][0] + before, merged[-1][1] + after)
    if len(merged) > 1 and not is_frequent(*merged[-1]):
        before, after = merged.pop()
        merged[-1] = (merged[-1][0] + before, merged[-1][1] + after)
    return [before for before, _ in merged], [after for _, after in merged]


def _oov_drift(old: WordProfile, new: WordProfile) -> Drift:
    compared, unlisted = _words_to_compare(old, new)
    unknown = {word: count for word, count in compared.items() if word not in old["words"]}
    running = max(sum(compared.values()) + unlisted, 1)
    rate = (sum(unknown.values()) + unlisted) / running
    expected = _expected_oov(old, new) if old["total"] else 0.0
    error = math.sqrt(rate / running + expected / old["total"]) if old["total"] else 0.0
    examples = _by_frequency(unknown)[:MAX_EXAMPLES]
    return {
        "value": max(0.0, rate - expected - 2 * error),
        "rate": rate,
        "expected": expected,
        "listed": None if old["complete"] else len(old["words"]),
        "examples": [{"word": word, "count": count} for word, count in examples],
    }


def _words_to_compare(old: WordProfile, new: WordProfile) -> tuple[Mapping[str, int], int]:
    """Return the new words to look up in the old list, and the number of unlisted running words.

    Unlisted words are rare and count as unknown. If both lists are cut, chance decides at their
    ends: then only the more frequent half of the new list is compared, of words that the smaller
    split has often enough.
    """
    if old["complete"] or new["complete"]:
        return new["words"], new["total"] - sum(new["words"].values())
    scale = min(old["total"], new["total"]) / new["total"]
    half = _by_frequency(new["words"])[: len(new["words"]) // 2]
    return {word: count for word, count in half if count * scale >= _MIN_EXPECTED}, 0


def _expected_oov(old: WordProfile, new: WordProfile) -> float:
    """Return the share of running words of the same kind of text that the old list would lack."""
    if old["complete"]:
        # The Good-Turing estimate of the share of unseen words in further text.
        return old["once"] / old["total"]
    # If both lists are cut, hardly a frequent word of one is beyond the end of the other.
    return 1 - sum(old["words"].values()) / old["total"] if new["complete"] else 0.0
