"""Which answers of the other splits the training split has too.

A split by the source keeps a source out of two splits, not its translation: other sources have the
same one, the shorter the more often, and of these a model only has to remember. ExampleValidator
writes their hashes beside its findings, and the Evaluator scores their rows apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from components.corpus_gen.splits import normal
from components.errors import UserError

FILE = "seen.json"


def key(text: str) -> int:
    """64 bits that stand for a text and for all that count as the same."""
    digest = hashlib.blake2b(normal(text).encode("utf-8"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def to_json(keys: Iterable[int]) -> str:
    """The content of ``FILE``."""
    return json.dumps(sorted(set(keys)))


def read(folder: Path, remedy: str) -> frozenset[int] | None:
    """The keys in an ExampleValidator's folder; None where it did not look for any.

    Args:
        folder: its findings.
        remedy: what the user can do where the file is broken.

    Raises:
        UserError: the file is broken.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
            raise ValueError("it is no list of numbers")
    except (OSError, ValueError) as error:
        told = f"the answers that train has too cannot be read: {error}"
        raise UserError(told, where=str(path), remedy=remedy) from error
    return frozenset(found)
