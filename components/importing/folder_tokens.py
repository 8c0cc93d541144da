"""The tokens of both sides in the folder of a model, and weights in the order of these tokens."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.components.importing.foreign_model import WeightReader
from regard.components.importing.token_table import NEVER, TokenTable
from regard.components.importing.tokenizer_files import (
    check_vocabulary,
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


@dataclass(frozen=True)
class SpecialNames:
    """The texts of the special tokens in a vocabulary.

    The defaults are those of SentencePiece, JoeyNMT and OpenNMT.

    Attributes:
        padding: names of padding; the row of unknown tokens if the vocabulary has none.
        unknown: names of unknown tokens; a row after all others if it has none.
        beginning: names of the first token that a decoder reads; the end if it has none.
        end: names of the end of a text, which every vocabulary has.
        are_required: whether the vocabulary must have each of them.
    """

    padding: tuple[str, ...] = ("<pad>", "<blank>")
    unknown: tuple[str, ...] = ("<unk>", "\u2047")
    beginning: tuple[str, ...] = ("<s>", "<bos>")
    end: tuple[str, ...] = ("</s>", "<eos>")
    are_required: bool = False

    @property
    def all(self) -> tuple[str, ...]:
        """All names."""
        return (*self.padding, *self.unknown, *self.beginning, *self.end)


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
        names: SpecialNames = SpecialNames(),
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
            names: the special tokens.

        Raises:
            UserError: a file is missing or damaged, the files belong to different models, or a
                special token is missing.
        """
        path = self.folder / model
        serialized = read_tokenizer(path)
        source = path if vocabulary is None else self.folder / vocabulary
        if vocabulary is None:
            texts = read_vocabulary(serialized)
        else:
            texts = _read_lines(source)
            ordinary = [text for text in texts if text not in names.all]
            renumber(path, serialized)  # refuses a file that is no model
            check_vocabulary(serialized, ordinary, source)
        if last_is_unknown:
            texts = [f"<unused {text}>" if text in names.unknown else text for text in texts]
        if is_restricted:
            serialized = forbid_tokens(path, serialized, set(texts))
        table = _table(texts, ordinary_tokens(serialized), tags, names, source)
        self.tables[side], self.sizes[side] = table, len(texts)
        self.tokenizers[side] = renumber(path, serialized, table)
        self.files += [model] if vocabulary is None else [model, vocabulary]


def find_tokenizer(folder: Path, side: str) -> tuple[str, str | None]:
    """Return the names of the SentencePiece model of a side and of its vocabulary, if it has one.

    They are ``source.model`` and ``source.vocab``, or ``shared.model`` and ``shared.vocab``.
    """
    name = side if os.path.isfile(folder / f"{side}.model") else "shared"
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
    """Return the tokens of a file with one on each line; what follows a tab does not count.

    Raises:
        UserError: the file cannot be read, a line is empty, or a token is listed twice.
    """
    try:
        text = read_regular(path, _MAX_VOCABULARY_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"The file cannot be read: {error}", str(path), _REMEDY) from None
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    tokens = [line.partition("\t")[0] for line in lines]
    first_lines: dict[str, int] = {}
    for number, token in enumerate(tokens, start=1):
        if not token:
            raise UserError(f"Line {number} has no token.", str(path), _REMEDY)
        if (first := first_lines.setdefault(token, number)) != number:
            message = f"Lines {first} and {number} have the same token, {token[:40]!a}."
            raise UserError(message, str(path), _REMEDY)
    return tokens


def _table(
    texts: list[str], tokens: list[str], tags: Sequence[str], names: SpecialNames, path: Path
) -> TokenTable:
    """Return the tokens of a side; ``texts`` gets the row of unknown tokens if it lacks one.

    Args:
        texts: the text of each row of the matrices.
        tokens: the tokens of the SentencePiece model, without the special ones.
        tags: the tags of sources.
        names: the special tokens.
        path: the file of the vocabulary, for messages.

    Raises:
        UserError: a special token is missing.
    """

    def find(choices: tuple[str, ...], default: int | None = None) -> int:
        found_rows = [texts.index(name) for name in choices if name in texts]
        if not found_rows and (default is None or names.are_required):
            message = f"The vocabulary has no special token {' or '.join(choices)}."
            raise UserError(message, str(path), _REMEDY)
        return found_rows[0] if found_rows else int(default or 0)

    if not names.are_required and not set(texts).intersection(names.unknown):
        texts.append(names.unknown[0])  # OpenNMT-tf has one more row than tokens
    unknown, end = find(names.unknown), find(names.end)
    special = {PAD: find(names.padding, unknown), UNK: unknown, EOS: end}
    start = find(names.beginning, end)
    rows = {text: row for row, text in reversed(list(enumerate(texts)))}
    symbols = {
        text: rows.get(text, rows.get(f"<{tag}>", unknown))
        for tag in tags
        for text in user_symbols([tag], "bpe")
    }
    missing = [text for text in tokens if text not in rows and text not in symbols]
    known = {row: f"<unused {row}>" if text in symbols else text for row, text in enumerate(texts)}
    return TokenTable.create(known, special, start, missing, symbols)
