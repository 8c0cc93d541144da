"""Pretrained word vectors as initial values of a model's embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.components.data.text_files import read_lines
from regard.components.settings.trainer import NODE
from regard.core import events
from regard.core.errors import DataError, UserError
from regard.core.formatting import truncate
from regard.models.settings.networks import PretrainedEmbeddingsConfig
from regard.models.vocabulary import BOS, EOS, PAD, SPACE, UNK

if TYPE_CHECKING:
    from regard.models.tasks.network import Network


class _Match(IntEnum):
    """How a token matches a word of the file, the best first."""

    EXACT = 0
    WITHOUT_MARK = 1
    CASE_INSENSITIVE = 2
    NONE = 3


def load(
    model: Any,
    network: Network,
    pretrained: PretrainedEmbeddingsConfig,
    processors: Mapping[str, Any],
) -> dict[str, dict[str, float]]:
    """Load word vectors into the embeddings, and report their coverage.

    A token gets the vector of the word that equals it: exactly, without the mark of a word's
    start, or ignoring case. The other tokens keep their random vectors, scaled to the standard
    deviation of the file's, or get zeros. An embedding that scales its output gets the vectors
    divided by that factor, so that the layers above see those of the file.

    Args:
        model: the built model.
        network: selects the embedding of a file.
        pretrained: the section ``model.pretrained``.
        processors: the tokenizer of each text feature.

    Returns:
        For each key with a file: the number of ``tokens`` (without special ones), the ``covered``
        ones, their ``share``, and the number of those that match only when case is ignored.

    Raises:
        UserError: a file cannot be read, its vectors have another size, or none matches a token.
    """
    reports = {}
    for key, path in pretrained.files().items():
        embedding, feature = network.embeddings(model, key)
        tokens = _tokens(processors[feature])
        # An embedding may have more rows than tokens; these have no name.
        tokens += [""] * (embedding.vocabulary - len(tokens))
        vectors = find_vectors(tokens, path, embedding.depth)
        if not vectors.is_covered.any():
            raise DataError(
                f"None of the {vectors.searched:,} {feature} tokens has a vector in this file.",
                where=path,
                remedy=f"Check that its words are in the language of the {feature}, and that the "
                "tokenizer's vocabulary contains whole words (tokenizer.type).",
            )
        reports[key] = vectors.report()
        _fill(embedding, vectors, pretrained.oov)
        events.emit("note", node=NODE, text=_describe(feature, reports[key]))
    return reports


def set_trainable(model: Any, network: Network, pretrained: PretrainedEmbeddingsConfig) -> None:
    """Freeze the embeddings with pretrained vectors if the configuration requires it."""
    for key in pretrained.files():
        embedding, _ = network.embeddings(model, key)
        embedding.trainable = pretrained.trainable


def _tokens(processor: Any) -> list[str]:
    """The vocabulary, by id."""
    return processor.id_to_piece(list(range(processor.vocab_size())))


@dataclass
class TokenVectors:
    """The pretrained vectors of a vocabulary.

    Attributes:
        vectors: ``[tokens, depth]``, zeros for a token without one.
        matches: ``[tokens]``, the ``_Match`` of each.
        searched: the number of tokens that are text.
    """

    vectors: np.ndarray
    matches: np.ndarray
    searched: int

    @property
    def is_covered(self) -> np.ndarray:
        """``[tokens]``, whether a token has a vector."""
        return self.matches != _Match.NONE

    def report(self) -> dict[str, float]:
        """The coverage, with the keys that ``load`` describes."""
        covered = int(self.is_covered.sum())
        return {
            "tokens": self.searched,
            "covered": covered,
            "share": round(covered / self.searched, 4),
            "case_insensitive": int((self.matches == _Match.CASE_INSENSITIVE).sum()),
        }


def find_vectors(tokens: list[str], path: str, depth: int) -> TokenVectors:
    """Find the vectors of a vocabulary in one pass over a file, without storing any others.

    Args:
        tokens: the vocabulary, by id.
        path: the file, ``.gz`` or plain text.
        depth: the size of a vector.

    Raises:
        UserError: the file cannot be read, or its vectors have another size.
    """
    names: dict[str, dict[int, _Match]] = {}  # a word: the tokens that it matches, and how well
    searched = 0
    for row, token in enumerate(tokens):
        bare = token.replace(SPACE, "")
        if not bare or row in (PAD, UNK, BOS, EOS):
            continue
        searched += 1
        forms = (
            (token, _Match.EXACT),
            (bare, _Match.WITHOUT_MARK),
            (bare.lower(), _Match.CASE_INSENSITIVE),
        )
        for name, match in forms:
            names.setdefault(name, {}).setdefault(row, match)
    vectors = TokenVectors(
        np.zeros((len(tokens), depth), np.float32), np.full(len(tokens), _Match.NONE), searched
    )
    for number, word, values in read_vectors(path, depth):
        # In a cased file, "Paris" also serves the token "paris", unless there is a better match.
        for name, limit in ((word, _Match.EXACT), (word.lower(), _Match.CASE_INSENSITIVE)):
            for row, match in names.get(name, {}).items():
                # Among equal matches the first row wins: the more frequent word.
                quality = max(match, limit)
                if quality < vectors.matches[row]:
                    vectors.matches[row] = quality
                    vectors.vectors[row] = _parse_vector(values, path, number)
    return vectors


def read_vectors(path: str, depth: int) -> Iterator[tuple[int, str, str]]:
    """Yield line number, word and values (as text) of a file in GloVe's or word2vec's text format.

    word2vec's begins with a line ``words depth``, GloVe's with the first word. A word can contain
    spaces (as in glove.840B). Words that are not UTF-8 match no token.

    Raises:
        UserError: the file cannot be read, or a vector has another size.
    """
    number, header = 0, None
    for number, line in enumerate(read_lines(path), 1):
        # word2vec leaves a space at the end of a row; other white space can be a word.
        row = line.rstrip(" ")
        if number == 1:
            header = _parse_header(row)
            size = header[1] if header else row.count(" ")
            if size != depth:
                raise _size_error(path, number, size, depth, row)
            if header:
                continue
        word, _, text = row.partition(" ")
        surplus = text.count(" ") + 1 - depth
        if surplus > 0 and not _is_number(text.split(" ", surplus)[surplus - 1]):
            cells = row.rsplit(" ", depth)
            word, text = cells[0], " ".join(cells[1:])
        elif surplus or not text:
            raise _size_error(path, number, row.count(" "), depth, row)
        yield number, word, text
    if header and header[0] != number - 1:
        message = f"The first line announces {header[0]:,} words, but the file has {number - 1:,}."
        remedy = "The file is damaged: download it again, or correct its first line."
        raise DataError(message, path, remedy)


def _parse_header(row: str) -> tuple[int, int] | None:
    """The number of words and their size, if the row is word2vec's header."""
    cells = row.split(" ")
    if len(cells) == 2 and all(cell.isascii() and cell.isdigit() for cell in cells):
        return int(cells[0]), int(cells[1])
    return None


def _size_error(path: str, number: int, size: int, depth: int, row: str) -> UserError:
    count = "no numbers" if size < 1 else f"{size:,} number{'s' if size > 1 else ''}"
    return DataError(
        f"The vector has {count}, but model.embedding is {depth}: {truncate(row, 40)!r}",
        where=f"{path}:{number}",
        remedy="Set model.embedding to the size of the vectors, or use another file. A row is a "
        "word and its numbers, separated by single spaces.",
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _parse_vector(text: str, path: str, number: int) -> np.ndarray:
    cells = text.split(" ")
    wrong = next((cell for cell in cells if not _is_number(cell)), None)
    if wrong is not None:
        remedy = "Remove the row from the file, or download the file again."
        raise DataError(f"{truncate(wrong, 20)!r} is not a number.", f"{path}:{number}", remedy)
    return np.array(cells, np.float32)


def _fill(embedding: Any, source: TokenVectors, oov: str) -> None:
    """Set the vectors; scale the other rows to their standard deviation, or set them to zero."""
    factor = math.sqrt(embedding.depth) if embedding.scale else 1.0
    vectors = source.vectors / factor
    table = np.asarray(embedding.table).copy()
    rest = table[~source.is_covered]
    # The random vectors have a mean of zero, so a factor is enough.
    factor = vectors[source.is_covered].std() / max(float(rest.std()), 1e-12)
    table[~source.is_covered] = rest * (factor if oov == "random" else 0.0)
    table[source.is_covered] = vectors[source.is_covered]
    embedding.table.assign(table)


def _describe(feature: str, report: Mapping[str, float]) -> str:
    return (
        f"word vectors for {report['covered']:,} of {report['tokens']:,} tokens of {feature} "
        f"({report['share']:.1%}), {report['case_insensitive']:,} of them found by ignoring case"
    )
