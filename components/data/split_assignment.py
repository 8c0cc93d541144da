"""The split of a row: fixed by a hash of its values, the same on every machine and in every run.

``data.spans.replay`` is the share of the train split that rows of older spans make up, whatever the
number of spans. A row is replayed if the hash of its content is below a threshold, which is the
same for all older spans: the same rows give the same sample, a larger share contains a smaller one,
and each row has the same chance. The threshold follows from the hashes of the older spans, which a
first reading counts, and from the number of all other rows.
"""

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from regard.components.data.sources import Corpus
from regard.components.data.text_analysis import normalize
from regard.core.features import Feature

_BINS = 2**16
# Another key than that of the splits, so that the hashes are independent.
_REPLAY_KEY = b"replay"


def canonical(value: Any) -> str | None:
    """Return the same text for values that count as the same; None for a missing value.

    Numbers are compared in float32, the precision of tf.Examples.
    """
    if value is None or isinstance(value, str):
        return value and normalize(value)
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, str) for item in items):
        return "\0".join(map(normalize, items))
    if all(isinstance(item, int) for item in items):
        return " ".join(map(str, items))
    return " ".join(map(repr, array("f", items)))


class HashedSplit:
    """Assigns a row by the hash of one value, so that no such value is in two splits.

    New rows do not move existing ones: a growing corpus keeps its test split.

    Args:
        fractions: the share of each split, 0 to 1; ``train`` has the rest.
        seed: another seed gives another assignment.
        column: the index of the value.

    Attributes:
        names: the splits, ``train`` first.
        column: the index of the value.
    """

    def __init__(self, fractions: Mapping[str, float], seed: int = 0, column: int = 0):
        self._key = str(seed).encode()
        self.column = column
        self._limits: list[tuple[int, str]] = []
        total = 0.0
        for name, share in fractions.items():
            total += share
            self._limits.append((int(total * 2**64), name))
        self.names = ("train", *fractions)

    def __call__(self, values: Sequence[Any]) -> str:
        """Return the split of a row."""
        number = _hash(canonical(values[self.column]) or "", self._key)
        for limit, name in self._limits:
            if number < limit:
                return name
        return "train"


def hashed_splits(corpus: Corpus) -> tuple[HashedSplit | None, HashedSplit | None]:
    """Return the assignment of rows of ``train``, and that of its newest span.

    Of the newest span an additional share goes to ``test`` if ``data.spans.test_share`` is set. The
    hash is the same, so that rows of ``test`` stay there; the additional rows return to ``train``
    when the span is no longer the newest. They may also be in an older span that is trained on;
    ``data.checks.overlap`` counts them.

    Returns:
        None for rows that all stay in ``train``.
    """
    split, extra = corpus.config.split, corpus.config.spans.test_share
    fractions = {"eval": split.eval, "test": split.test} if split else {}
    column = _deciding_column(corpus.features, split.by if split else None)
    seed = split.seed if split else 0
    default = HashedSplit(fractions, seed, column) if fractions else None
    if not extra:
        return default, default
    fractions["test"] = fractions.get("test", 0.0) + extra
    return default, HashedSplit(fractions, seed, column)


def can_decide_split(feature: Feature) -> bool:
    """Return whether the split of a row may depend on a feature.

    A feature with several values cannot keep rows together: each value may be in another row too.
    """
    has_one_value = not feature.multiple and not feature.optional
    return feature.kind.identifies_rows and feature.role != "extra" and has_one_value


def _deciding_column(features: Sequence[Feature], by: str | None) -> int:
    if by is not None:
        return next(i for i, feature in enumerate(features) if feature.name == by)
    inputs = [feature for feature in features if feature.role == "input"]
    # A missing value is the same in many rows, which would all be in one split.
    return features.index(next((f for f in inputs if not f.optional), inputs[0]))


def replay_threshold(counts: Mapping[int, int], other_rows: int, share: float) -> int:
    """Return the bin below which the number of rows is nearest to the share.

    Args:
        counts: the numbers of rows of all older spans by bin.
        other_rows: the number of all other rows of ``train``.
        share: the share of the replayed rows in ``train``, 0 to 1.
    """
    needed = replayed_rows(other_rows, share)
    if sum(counts.values()) <= needed:
        return _BINS
    threshold = total = 0
    for number, count in sorted(counts.items()):
        if total + count - needed > needed - total:
            break
        threshold, total = number + 1, total + count
    return threshold


def replayed_rows(other_rows: int, share: float) -> int:
    """Return how many replayed rows make up a share together with other rows."""
    return round(other_rows * share / (1 - share))


def replay_bin(values: Sequence[Any]) -> int:
    """Return the bin of a row's hash, which decides whether the row is replayed."""
    content = "\x1f".join(canonical(value) or "" for value in values)
    return _hash(content, _REPLAY_KEY) * _BINS >> 64


def _hash(content: str, key: bytes) -> int:
    # A lone surrogate is not a character, but must not end the reading.
    encoded = content.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8, key=key).digest(), "big")
