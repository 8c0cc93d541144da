"""Which split a row belongs to: fixed by its text, on every machine and in every run."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from components.corpus_gen.sources import features
from components.errors import UserError


def normal(text: str) -> str:
    """The form in which two texts count as the same: stripped and NFC-normalised."""
    text = text.strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


class HashedSplit:
    """Draws a row's split by the hash of one of its texts, so that no such text is in two splits.

    Rows that come later do not move the ones that are there: a growing corpus keeps its test set.

    Args:
        shares: the share of each split, 0..1; what is left is ``train``.
        seed: another seed draws another split.
        column: which of a row's texts decides, from 0.
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

    def __call__(self, values: Sequence[str]) -> str:
        """The split of a row with these texts."""
        # A lone surrogate is no text, but must not stop the split.
        content = normal(values[self._column]).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=8, key=self._key)
        drawn = int.from_bytes(digest.digest(), "big")
        for limit, name in self._limits:
            if drawn < limit:
                return name
        return "train"


def hashed(data: Mapping[str, Any], given: Collection[str]) -> HashedSplit | None:
    """The split that cuts ``eval`` and ``test`` out of ``train`` where no file is given for them.

    Args:
        data: the ``data`` section, whose ``split`` has the shares, the seed, and in ``by`` the
            feature that decides, or none for the first.
        given: the splits that have files of their own.

    Returns:
        None where every split has files of its own.

    Raises:
        UserError: the shares leave nothing to train on, or no feature is called as ``by`` says.
    """
    rule = data.get("split") or {}
    default = {"eval": 0.05, "test": 0.05}
    shares = {
        name: float(rule.get(name, share)) for name, share in default.items() if name not in given
    }
    if not shares:
        return None
    names = features(data)
    by = rule.get("by") or names[0]
    if by not in names:
        raise UserError(
            f"unknown side {by!r}", where="data.split.by", remedy=f"Choose {' or '.join(names)}."
        )
    return HashedSplit(shares, int(rule.get("seed", 0)), names.index(by))
