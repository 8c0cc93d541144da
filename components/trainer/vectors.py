"""Word vectors that others have trained, as the first values of a model's embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from components import events
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.text import lines, shorten
from components.errors import UserError
from models.tasks.base import Task
from models.vocabulary import BOS, EOS, PAD, UNK

# SentencePiece's sign for the space before a word.
_MARK = "\u2581"
# How a piece can be found, the best way first.
_AS_WRITTEN, _WITHOUT_MARK, _IGNORING_CASE, _NOT_FOUND = range(4)


def apply(
    model: Any, task: Task, pretrained: Mapping[str, Any], tokenizers: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Puts the vectors of ``pretrained`` into the embeddings, and tells how many there were.

    A piece has the vector of the word that it is: as it is written in the file, else without the
    mark of a word's start, else ignoring case. The rest keeps its random vectors, scaled to the
    same standard deviation, or gets zeros. An embedding that scales its vectors gets them divided
    by that factor, so that the layers above see those of the file.

    Args:
        model: built, and not yet compiled, since frozen embeddings are no part of the training.
        task: says which embedding a file is for.
        pretrained: the YAML's section ``model.pretrained``: files by key, ``trainable`` and
            ``others``.
        tokenizers: one a text feature.

    Returns:
        For each key with a file: ``pieces`` (without the special ones), ``covered``, their
        ``share``, the numbers found ``as_written``, ``without_mark`` and ``ignoring_case``, and
        ``deviation``, the standard deviation of the file's numbers.

    Raises:
        UserError: a file cannot be read, has vectors of another depth, or has none of the pieces.
    """
    reports = {}
    for key, path in _files(pretrained):
        embedding, feature = task.embeddings(model, key)
        pieces = _pieces(tokenizers[feature])
        # An embedding may have vectors for more than the pieces, which have no name.
        pieces += [""] * (embedding.vocabulary - len(pieces))
        found = find(pieces, path, embedding.depth)
        if not found.rows.any():
            raise UserError(
                f"none of the {found.asked:,} pieces of the {feature} has a vector there",
                where=path,
                remedy=f"Are these words of the language of the {feature}, and are there words "
                "among the pieces (tokenizer.type)?",
            )
        reports[key] = found.report()
        _fill(embedding, found, pretrained["others"])
        embedding.trainable = pretrained["trainable"]
        events.emit("note", node="Trainer", text=_told(feature, reports[key]))
    return reports


def freeze(model: Any, task: Task, pretrained: Mapping[str, Any]) -> None:
    """Freezes what ``apply`` freezes, in a model that gets its weights from another one."""
    for key, _ in _files(pretrained):
        embedding, _ = task.embeddings(model, key)
        embedding.trainable = pretrained["trainable"]


def _files(pretrained: Mapping[str, Any]) -> list[tuple[str, str]]:
    given = pretrained.items()
    return [(k, path) for k, path in given if path is not None and k not in ("trainable", "others")]


def _pieces(tokenizer: Any) -> list[str]:
    """A vocabulary, by id."""
    ids = np.arange(int(tokenizer.vocab_size()), dtype=np.int32)
    return [piece.decode("utf-8") for piece in tokenizer.id_to_string(ids).numpy()]


@dataclass
class Found:
    """The vectors of a vocabulary's pieces.

    Attributes:
        vectors: ``[pieces, depth]``, zeros where there is none.
        ways: ``[pieces]``, how each was found.
        asked: how many pieces are text.
    """

    vectors: np.ndarray
    ways: np.ndarray
    asked: int

    @property
    def rows(self) -> np.ndarray:
        """``[pieces]``, whether a piece was found."""
        return self.ways != _NOT_FOUND

    def report(self) -> dict[str, Any]:
        """The coverage as plain numbers."""
        covered = int(self.rows.sum())
        return {
            "pieces": self.asked,
            "covered": covered,
            "share": round(covered / self.asked, 4),
            "as_written": int((self.ways == _AS_WRITTEN).sum()),
            "without_mark": int((self.ways == _WITHOUT_MARK).sum()),
            "ignoring_case": int((self.ways == _IGNORING_CASE).sum()),
            "deviation": round(float(self.vectors[self.rows].std()), 6),
        }


def find(pieces: list[str], path: str, depth: int) -> Found:
    """Reads a file once for the vectors of a vocabulary, and holds no others.

    Args:
        pieces: the vocabulary, by id.
        path: the file, ``.gz`` or not.
        depth: the numbers that a vector must have.

    Raises:
        UserError: the file cannot be read, or has vectors of another depth.
    """
    names: dict[str, dict[int, int]] = {}  # a word: the pieces it is for, and how good it is
    asked = 0
    for row, piece in enumerate(pieces):
        bare = piece.replace(_MARK, "")
        if not bare or row in (PAD, UNK, BOS, EOS):
            continue
        asked += 1
        forms = (piece, _AS_WRITTEN), (bare, _WITHOUT_MARK), (bare.lower(), _IGNORING_CASE)
        for name, way in forms:
            names.setdefault(name, {}).setdefault(row, way)
    found = Found(
        np.zeros((len(pieces), depth), np.float32), np.full(len(pieces), _NOT_FOUND), asked
    )
    for number, word, text in read(path, depth):
        # A cased file's "Paris" is for the piece "paris" too, as long as that has no other.
        for name, least in ((word, _AS_WRITTEN), (word.lower(), _IGNORING_CASE)):
            for row, way in names.get(name, {}).items():
                # Of two rows that are as good the first one stays: the more frequent word.
                if max(way, least) < found.ways[row]:
                    found.ways[row] = max(way, least)
                    found.vectors[row] = _vector(text, path, number)
    return found


def read(path: str, depth: int) -> Iterator[tuple[int, str, str]]:
    """Yields line number, word and numbers, as text, of GloVe's or word2vec's text format.

    word2vec's begins with a line ``words depth``, GloVe's with the first word. Words can hold
    spaces (glove.840B has some). What is not UTF-8 is no word of ours, and does not matter.

    Raises:
        UserError: the file cannot be read, or a row has not ``depth`` numbers.
    """
    number, told = 0, None
    try:
        for number, line in enumerate(lines(path, Problems(), "replace"), 1):
            # word2vec leaves a space at the end of a row; other white space can be a word.
            row = (line or "").rstrip(" ")
            if number == 1:
                told = _header(row)
                found = told[1] if told else row.count(" ")
                if found != depth:
                    raise _unlike(path, number, found, depth, row)
                if told:
                    continue
            word, _, text = row.partition(" ")
            surplus = text.count(" ") + 1 - depth
            if surplus > 0 and not _is_number(text.split(" ", surplus)[surplus - 1]):
                cells = row.rsplit(" ", depth)
                word, text = cells[0], " ".join(cells[1:])
            elif surplus or not text:
                raise _unlike(path, number, row.count(" "), depth, row)
            yield number, word, text
    except Broken as broken:
        problem = broken.problem
        raise UserError(problem.text, problem.place, problem.remedy) from broken
    if told and told[0] != number - 1:
        raise UserError(
            f"the first line promises {told[0]:,} words, but there are {number - 1:,}",
            where=path,
            remedy="The file is damaged: fetch it again, or correct its first line.",
        )


def _header(row: str) -> tuple[int, int] | None:
    """The number of words and their depth, where the row tells them."""
    cells = row.split(" ")
    if len(cells) == 2 and all(cell.isascii() and cell.isdigit() for cell in cells):
        return int(cells[0]), int(cells[1])
    return None


def _unlike(path: str, number: int, found: int, depth: int, row: str) -> UserError:
    told = "no numbers" if found < 1 else f"{found:,} number{'s' if found > 1 else ''}"
    return UserError(
        f"a vector of {told}, but model.embedding is {depth}: {shorten(row, 40)!r}",
        where=f"{path}:{number}",
        remedy="Set model.embedding to the depth of the vectors, or take others; a row is a word "
        "and its numbers, with one space between them.",
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _vector(text: str, path: str, number: int) -> np.ndarray:
    """The numbers of a row."""
    cells = text.split(" ")
    wrong = next((cell for cell in cells if not _is_number(cell)), None)
    if wrong is not None:
        raise UserError(
            f"{shorten(wrong, 20)!r} is not a number",
            where=f"{path}:{number}",
            remedy="Take the row out of the file, or fetch the file again.",
        )
    return np.array(cells, np.float32)


def _fill(embedding: Any, found: Found, others: str) -> None:
    """Sets the vectors, and gives the others their standard deviation, or zeros."""
    factor = math.sqrt(embedding.depth) if embedding.scale else 1.0
    vectors = found.vectors / factor
    table = np.asarray(embedding.table).copy()
    rest = table[~found.rows]
    # The random ones have a mean of zero, so that a factor is all it takes.
    factor = vectors[found.rows].std() / max(float(rest.std()), 1e-12)
    table[~found.rows] = rest * (factor if others == "random" else 0.0)
    table[found.rows] = vectors[found.rows]
    embedding.table.assign(table)


def _told(feature: str, report: Mapping[str, Any]) -> str:
    return (
        f"word vectors for {report['covered']:,} of {report['pieces']:,} pieces of the {feature} "
        f"({report['share']:.1%}), {report['ignoring_case']:,} of them ignoring case"
    )
