"""Mapping from an old vocabulary to a new one: which old tokens make up each new token."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from regard.core.errors import UserError
from regard.models.vocabulary import SPACE
from regard.serving.contract import TRAINING


@dataclass(frozen=True)
class VocabularyMapping:
    """How the embedding rows of an old vocabulary become those of a new one.

    Attributes:
        old_size: the size of the old vocabulary.
        sources: for each new token the ids of the old tokens whose mean is its row: the same token,
            or those that the old tokenizer splits its text into; empty for an unknown text.
        copied: the number of tokens in both vocabularies.
    """

    old_size: int
    sources: tuple[tuple[int, ...], ...]
    copied: int

    def map_rows(self, old: np.ndarray, new: np.ndarray, axis: int = 0) -> np.ndarray:
        """Compute the rows of the new vocabulary from those of the old one.

        Args:
            old: ``[old tokens + extra rows, ...]``, with the rows along ``axis``.
            new: ``[new tokens + extra rows, ...]``; tokens without sources keep these rows. The
                extra rows, which belong to no token, are taken from ``old``.
            axis: the axis of the rows.
        """
        old, rows = np.moveaxis(old, axis, 0), np.moveaxis(new, axis, 0).copy()
        for row, ids in enumerate(self.sources):
            if ids:
                rows[row] = old[list(ids)].mean(axis=0)
        rows[len(self.sources) :] = old[self.old_size :]
        return np.moveaxis(rows, 0, axis)

    def report(self) -> dict[str, float]:
        """The number of ``tokens``, and how many are ``copied``, ``composed`` and ``new``."""
        new = sum(not ids for ids in self.sources)
        return {
            "tokens": len(self.sources),
            "copied": self.copied,
            "composed": len(self.sources) - self.copied - new,
            "new": new,
            "share": round(self.copied / len(self.sources), 4),
        }


def map_vocabulary(old: bytes, new: bytes) -> VocabularyMapping:
    """Map the tokens of one serialized SentencePiece model to those of another."""
    before = sentencepiece.SentencePieceProcessor(model_proto=old)
    after = sentencepiece.SentencePieceProcessor(model_proto=new)
    old_tokens, new_tokens = read_vocabulary(old), read_vocabulary(new)
    ids = {token: i for i, token in enumerate(old_tokens)}
    sources = tuple(
        (ids[token],) if token in ids else _compose(before, after, i, ids)
        for i, token in enumerate(new_tokens)
    )
    return VocabularyMapping(len(ids), sources, sum(token in ids for token in new_tokens))


def read_vocabulary(serialized: bytes) -> list[str]:
    """Return the tokens of a serialized SentencePiece model, in the order of their ids."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    return [tokenizer.id_to_piece(i) for i in range(tokenizer.get_piece_size())]


def check_vocabularies(
    first: Mapping[str, bytes], second: Mapping[str, bytes], names: str, where: str
) -> None:
    """Check that two models of an ensemble have the same vocabularies.

    Args:
        first: the serialized SentencePiece model of each text feature of the first model.
        second: those of the second model.
        names: the names of both models in the message.
        where: the option or key to name in the message.

    Raises:
        UserError: a vocabulary differs.
    """
    for side, serialized in first.items():
        if read_vocabulary(serialized) != read_vocabulary(second[side]):
            message = f"The {side} vocabularies of {names} differ."
            remedy = "Use models with the same tokenizers, such as runs with other seeds."
            raise UserError(message, where, remedy)


def _compose(before: Any, after: Any, number: int, ids: Mapping[str, int]) -> tuple[int, ...]:
    """The old tokens of the text of a new token, without unknown ones."""
    if after.is_control(number) or after.is_unknown(number) or after.is_byte(number):
        return ()  # its name is not text
    token = after.id_to_piece(number)
    sources = before.encode(token.replace(SPACE, " "))
    if sources and not token.startswith(SPACE):
        # The tokenizer adds a word mark to any text; this token is inside a word.
        inside = before.id_to_piece(sources[0]).removeprefix(SPACE)
        sources = ([ids.get(inside, sources[0])] if inside else []) + sources[1:]
    return tuple(i for i in sources if i != before.unk_id())


def read_stored_tokenizers(folder: Path) -> dict[str, bytes]:
    """Read the serialized SentencePiece model of each text feature of a SavedModel.

    Raises:
        OSError, EOFError, ValueError, zipfile.BadZipFile: the file is missing or damaged.
    """
    with np.load(folder / TRAINING) as file:
        names = [name for name in file.files if name.startswith("tokenizer/")]
        return {name.removeprefix("tokenizer/"): file[name].tobytes() for name in names}
