"""Reference texts of the other splits that the training split contains too.

A split by the source keeps equal sources together, not equal translations: different sources have
the same translation, more often the shorter it is, and a model can memorise it. ExampleValidator
writes the hashes of these texts next to its findings, and the Evaluator scores their rows apart.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from regard.components.data.text_analysis import normalize
from regard.core.errors import UserError

OVERLAP_FILE = "target_overlap.json"


def hash64(content: bytes) -> int:
    """Return 64 bits of a digest; among ten million the chance of a collision is 1 in 400,000."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def text_hash(text: str) -> int:
    """Return 64 bits that are the same for texts that differ only in white space."""
    return hash64(normalize(" ".join(text.split())).encode("utf-8"))


def overlap_to_json(hashes: Sequence[int]) -> str:
    """Return the content of ``OVERLAP_FILE``."""
    return json.dumps(hashes)


def read_overlap(folder: Path, remedy: str) -> frozenset[int] | None:
    """Read the hashes in an ExampleValidator's folder; None if the check was off.

    Args:
        folder: its findings.
        remedy: what the user can do if the file is broken.

    Raises:
        UserError: the file is broken.
    """
    path = folder / OVERLAP_FILE
    if not path.exists():
        return None
    try:
        return frozenset(TypeAdapter(list[int]).validate_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        message = f"the target overlap cannot be read: {str(error).splitlines()[0]}"
        raise UserError(message, where=str(path), remedy=remedy) from error
