"""The tokens of both sides in the folder of a model, and weights in the order of these tokens."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from regard.components.importing.foreign_model import WeightReader
from regard.components.importing.token_table import NEVER, TokenTable
from regard.components.importing.tokenizer_files import (
    forbid_tokens,
    ordinary_tokens,
    read_tokenizer,
    renumber,
)
from regard.components.trainer.vocabulary_mapping import read_vocabulary
from regard.core.errors import UserError
from regard.core.regular_files import read_regular
from regard.models.tags import user_symbols
from regard.models.vocabulary import EOS, PAD, UNK

_MAX_VOCABULARY_BYTES = 64 << 20
# The last parts of the names of weights with a row per token, and the axis of the rows.
_ROW_AXES = {"embedding/table": 0, "logits_bias": 0, "logits/kernel": 1, "logits/bias": 0}
_REMEDY = "See docs/how-to/import.md."
# The names of the special tokens in SentencePiece, JoeyNMT and OpenNMT.
_PADDINGS, _UNKNOWN = ("<pad>", "<blank>"), ("<unk>", "\u2047")
_BEGINNINGS, _ENDS = ("<s>", "<bos>"), ("</s>", "<eos>")


class FolderTokens:
    """The SentencePiece models of a folder, and the rows of their tokens in its matrices.

    Args:
        folder: the folder.

    Attributes:
        tokenizers: the serialized SentencePiece model of each side, with Regard's ids.
        tables: the tokens of each side, and their rows in the matrices of the folder.
        sizes: for each side the number of rows of its matrices.
        files: the names of the files that were read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.tokenizers: dict[str, bytes] = {}
        self.tables: dict[str, TokenTable] = {}
        self.sizes: dict[str, int] = {}
        self.files: list[str] = []

    def read_side(
        self,
        side: str,
        model: str,
        vocabulary: str | None = None,
        tags: Sequence[str] = (),
        last_is_unknown: bool = False,
        is_restricted: bool = False,
    ) -> None:
        """Read the files of a side.

        Args:
            side: ``source`` or ``target``.
            model: the name of the SentencePiece model.
            vocabulary: the name of a file with the token of each row, one on a line; None: the rows
                have the order of the SentencePiece model.
            tags: the tags of sources.
            last_is_unknown: whether one more row than tokens is that of unknown tokens, even if the
                list has ``<unk>``.
            is_restricted: whether texts are segmented without the tokens that the list lacks.

        Raises:
            UserError: a file is missing or damaged, or there is no end of a sentence.
        """
        path = self.folder / model
        serialized = read_tokenizer(path)
        if vocabulary is None:
            texts = read_vocabulary(serialized)
        else:
            texts = _read_lines(self.folder / vocabulary)
        if last_is_unknown:
            texts = [f"<unused {text}>" if text in _UNKNOWN else text for text in texts]
        if is_restricted:
            serialized = forbid_tokens(path, serialized, set(texts))
        table = _table(texts, ordinary_tokens(serialized), tags, path)
        self.tables[side], self.sizes[side] = table, len(texts)
        self.tokenizers[side] = renumber(path, serialized, table)
        self.files += [model] if vocabulary is None else [model, vocabulary]


def find_tokenizer(folder: Path, side: str) -> tuple[str, str | None]:
    """Return the names of the SentencePiece model of a side and of its vocabulary, if it has one.

    They are ``source.model`` and ``source.vocab``, or ``shared.model`` and ``shared.vocab``.
    """
    name = side if (folder / f"{side}.model").is_file() else "shared"
    vocabulary = f"{name}.vocab"
    return f"{name}.model", vocabulary if os.path.lexists(folder / vocabulary) else None


class ReorderedWeights(WeightReader):
    """Weights whose rows have the order of a folder's tokens.

    Args:
        tables: the tokens of ``source`` and ``target``.
        never: further ids of the target that no output has.
    """

    def __init__(self, tables: Mapping[str, TokenTable], never: Sequence[int] = ()):
        self._tables, self._never = tables, list(never)

    @abstractmethod
    def read(self, name: str) -> np.ndarray:
        """Return a weight with the rows in their own order, as float32.

        Raises:
            UserError: it is missing or cannot be read.
        """

    def __call__(self, name: str) -> np.ndarray:
        value, axis = self.read(name), row_axis(name)
        if axis is None:
            return value
        table = self._tables[side_of(name)]
        value = value.take(table.rows, axis=axis)
        if name.endswith("bias"):
            value[[*table.copies, *self._never]] = NEVER
        return value


def side_of(name: str) -> str:
    """Return the text feature of the vocabulary of a weight."""
    return "source" if name.startswith("encoder/") else "target"


def row_axis(name: str) -> int | None:
    """Return the axis of the tokens of a weight; None without one."""
    return _ROW_AXES.get(name.partition("/")[2])


def _read_lines(path: Path) -> list[str]:
    """Return the tokens of a file with one on each line; what follows a tab does not count."""
    try:
        text = read_regular(path, _MAX_VOCABULARY_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"The file cannot be read: {error}", str(path), _REMEDY) from None
    return [line.partition("\t")[0] for line in text.rstrip("\n").split("\n")]


def _table(texts: list[str], tokens: list[str], tags: Sequence[str], path: Path) -> TokenTable:
    """Return the tokens of a side; ``texts`` gets the row of unknown tokens if it lacks one.

    Args:
        texts: the text of each row of the matrices.
        tokens: the tokens of the SentencePiece model, without the special ones.
        tags: the tags of sources.
        path: the SentencePiece model, for messages.
    """

    def find(names: tuple[str, ...], default: int | None = None) -> int | None:
        return next((texts.index(name) for name in names if name in texts), default)

    if find(_UNKNOWN) is None:  # OpenNMT-tf has one more row than tokens
        texts.append(_UNKNOWN[0])
    unknown, end = find(_UNKNOWN), find(_ENDS)
    if end is None or unknown is None:
        message = f"The vocabulary has no end of a sentence: {' or '.join(_ENDS)}."
        raise UserError(message, str(path), _REMEDY)
    special = {PAD: find(_PADDINGS, unknown) or 0, UNK: unknown, EOS: end}
    start = find(_BEGINNINGS, end) or 0
    rows = {text: row for row, text in reversed(list(enumerate(texts)))}
    symbols = {
        text: rows.get(text, rows.get(f"<{tag}>", unknown))
        for tag in tags
        for text in user_symbols([tag], "bpe")
    }
    missing = [text for text in tokens if text not in rows and text not in symbols]
    known = {row: f"<unused {row}>" if text in symbols else text for row, text in enumerate(texts)}
    return TokenTable.create(known, special, start, missing, symbols)
