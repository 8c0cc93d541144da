"""Which references of the other splits the training split has too.

A split by the source keeps a source out of two splits, not its translation: other sources have the
same one, the shorter the more often, and of these a model only has to remember. ExampleValidator
writes their hashes beside its findings, and the Evaluator scores their rows apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from components.errors import UserError
from components.normal_form import normal

FILE = "seen.json"


def digest(content: bytes) -> int:
    """64 bits that stand for some bytes.

    A wrong hit among ten million has a chance of one in 400,000.
    """
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def key(text: str) -> int:
    """64 bits that stand for a text and for all that differ from it in spaces and line breaks."""
    return digest(normal(" ".join(text.split())).encode("utf-8"))


def to_json(keys: Sequence[int]) -> str:
    """The content of ``FILE``."""
    return json.dumps(keys)


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
        told = f"the references that train has too cannot be read: {error}"
        raise UserError(told, where=str(path), remedy=remedy) from error
    return frozenset(found)
