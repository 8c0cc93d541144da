"""What a new vocabulary has of an old one: for each new piece the old pieces that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sentencepiece

# SentencePiece's sign for the space before a word.
_MARK = "\u2581"


@dataclass(frozen=True)
class Passage:
    """How the rows of an old vocabulary become those of a new one.

    Attributes:
        before: how many pieces the old vocabulary has.
        parts: of each new piece the ids of the old ones whose mean is its row: its own, those
            that the old tokenizer cuts its text into, or none.
        known: how many of them the old vocabulary has too.
    """

    before: int
    parts: tuple[tuple[int, ...], ...]
    known: int

    def rows(self, old: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """The new rows; where a piece has no part in the old vocabulary its own are left.

        Args:
            old: ``[old pieces + others, ...]``.
            fresh: ``[new pieces + others, ...]``; the others are the old ones.
        """
        made = fresh.copy()
        for row, ids in enumerate(self.parts):
            if ids:
                made[row] = old[list(ids)].mean(axis=0)
        made[len(self.parts) :] = old[self.before :]
        return made

    def along(self, axis: int, old: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """The same for arrays whose rows lie along another axis."""
        rows = self.rows(np.moveaxis(old, axis, 0), np.moveaxis(fresh, axis, 0))
        return np.moveaxis(rows, 0, axis)

    def report(self) -> dict[str, Any]:
        """How many pieces there are, and how many are ``copied``, ``composed`` and ``new``."""
        new = sum(not ids for ids in self.parts)
        return {
            "pieces": len(self.parts),
            "copied": self.known,
            "composed": len(self.parts) - self.known - new,
            "new": new,
            "share": round(self.known / len(self.parts), 4),
        }


def passage(old: bytes, new: bytes) -> Passage:
    """Compares two serialized SentencePiece models."""
    before, after = (sentencepiece.SentencePieceProcessor(model_proto=one) for one in (old, new))
    names = [[one.id_to_piece(i) for i in range(one.get_piece_size())] for one in (before, after)]
    ids = {piece: i for i, piece in enumerate(names[0])}
    parts = tuple(
        (ids[piece],) if piece in ids else _parts(before, after, i, ids)
        for i, piece in enumerate(names[1])
    )
    return Passage(len(ids), parts, sum(piece in ids for piece in names[1]))


def _parts(before: Any, after: Any, number: int, ids: Mapping[str, int]) -> tuple[int, ...]:
    """What the old tokenizer cuts the text of a new piece into, without what it does not know."""
    if after.is_control(number) or after.is_unknown(number) or after.is_byte(number):
        return ()  # its name is no text
    piece = after.id_to_piece(number)
    found = before.encode(piece.replace(_MARK, " "))
    if found and not piece.startswith(_MARK):
        # Any text is taken for the beginning of a word, which this piece is not.
        inside = before.id_to_piece(found[0]).removeprefix(_MARK)
        found = ([ids.get(inside, found[0])] if inside else []) + found[1:]
    return tuple(i for i in found if i != before.unk_id())
