"""Which split a row belongs to: fixed by one of its values, on every machine and in every run."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from components.corpus_gen.sources import Group, features
from components.errors import UserError
from components.normal_form import normal
from models.tasks.features import Feature


def canonical(value: Any) -> str | None:
    """A text that is the same for values that count as the same; None for none.

    Numbers are compared as tf.Examples hold them, in float32.
    """
    if value is None or isinstance(value, str):
        return value and normal(value)
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, str) for item in items):
        return "\0".join(map(normal, items))
    if all(isinstance(item, int) for item in items):
        return " ".join(map(str, items))
    return " ".join(map(repr, array("f", items)))


class HashedSplit:
    """Draws a row's split by the hash of one of its values, so that no such value is in two splits.

    Rows that come later do not move the ones that are there: a growing corpus keeps its test set.

    Args:
        shares: the share of each split, 0..1; what is left is ``train``.
        seed: another seed draws another split.
        column: which of a row's values decides, from 0.
    """

    def __init__(self, shares: Mapping[str, float], seed: int = 0, column: int = 0):
        total = sum(shares.values())
        if total >= 1 or min(shares.values(), default=0) < 0:
            told = ", ".join(f"{name} {share}" for name, share in shares.items())
            raise UserError(
                f"the shares leave nothing to train on ({told})",
                where="data.split",
                remedy="Choose shares from 0 to 1 that add up to less than 1.",
            )
        self._key = str(seed).encode()
        self._column = column
        self._limits: list[tuple[int, str]] = []
        reached = 0.0
        for name, share in shares.items():
            if share > 0:
                reached += share
                self._limits.append((int(reached * 2**64), name))
        self.names = ["train", *(name for _, name in self._limits)]

    def __call__(self, values: Sequence[Any]) -> str:
        """The split of a row with these values."""
        # A lone surrogate is no text, but must not stop the split.
        content = (canonical(values[self._column]) or "").encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=8, key=self._key)
        drawn = int.from_bytes(digest.digest(), "big")
        for limit, name in self._limits:
            if drawn < limit:
                return name
        return "train"


class Draws:
    """Which rows of ``train`` go to other splits, group by group.

    Of the newest span more goes to ``test`` than of the others, where ``data.spans.test_share``
    says so. By the same hash: what is in ``test`` anyway stays there, and what is added goes back
    to ``train`` when the span is no longer the newest. What is added may stand in an older span
    too, which is trained on; ``data.checks.overlap`` tells how often. Of the older spans that are
    replayed, nothing that either draw keeps from ``train`` is.

    Args:
        data: the ``data`` section.
        given: the groups of files by split.

    Raises:
        UserError: as ``hashed`` does.
    """

    def __init__(self, data: Mapping[str, Any], given: Mapping[str, Sequence[Group]]):
        share = max((group.test_share for group in given.get("train", ())), default=0.0)
        self.usual = hashed(data, given)
        self._newest = hashed(data, given, share) if share else None
        drawn = (split.names for split in (self.usual, self._newest) if split)
        self.names = {*given, *(name for names in drawn for name in names)}

    def of(self, group: Group) -> HashedSplit | None:
        """What draws the split of a group's rows; None where all have the group's own."""
        if group.split != "train":
            return None
        if group.replay:
            return self._newest or self.usual
        return self._newest if group.test_share else self.usual


def hashed(
    data: Mapping[str, Any], given: Collection[str], more_test: float = 0.0
) -> HashedSplit | None:
    """The split that cuts ``eval`` and ``test`` out of ``train`` where no file is given for them.

    Args:
        data: the ``data`` section, whose ``split`` has the shares, the seed, and in ``by`` the
            feature that decides, or none for the first input.
        given: the splits that have files of their own.
        more_test: the share that goes to ``test`` besides, also where it has files of its own.

    Returns:
        None where every split has files of its own.

    Raises:
        UserError: the shares leave nothing to train on, or ``by`` names no feature that can decide.
    """
    rule = data.get("split") or {}
    default = {"eval": 0.05, "test": 0.05}
    shares = {
        name: float(rule.get(name, share)) for name, share in default.items() if name not in given
    }
    if more_test:
        shares["test"] = shares.get("test", 0.0) + more_test
    if not shares:
        return None
    column = _deciding(features(data), rule.get("by"))
    return HashedSplit(shares, int(rule.get("seed", 0)), column)


def _deciding(row: Sequence[Feature], by: str | None) -> int:
    """The place of the feature that decides about a row's split."""
    names = [feature.name for feature in row]
    if by is None:
        inputs = [feature for feature in row if feature.role == "input"]
        # What is missing is the same in many rows, which would all be in one split.
        return row.index(next((f for f in inputs if not f.optional), inputs[0]))
    choices = [feature.name for feature in row if _can_decide(feature)]
    if by not in choices:
        told = f"{by} cannot decide about a split" if by in names else f"unknown side {by!r}"
        raise UserError(told, where="data.split.by", remedy=f"Choose {' or '.join(choices)}.")
    return names.index(by)


def _can_decide(feature: Feature) -> bool:
    # Of several texts each may be in another row too: they cannot keep rows together.
    always_one = not feature.several and not feature.optional
    return feature.kind in ("text", "image") and feature.role != "extra" and always_one
