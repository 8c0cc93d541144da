"""The words of a file, of word vectors or of words alone, behind those of a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sentencepiece

from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.text import lines
from components.errors import UserError
from components.tokenizer_trainer.proto import parsed

# SentencePiece's sign for the space before a word.
_MARK = "\u2581"


def words_of(path: str) -> Iterator[str]:
    """The first word of each line, in order: of words alone, or GloVe's or word2vec's text format.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        for number, line in enumerate(lines(path, Problems(), "replace"), 1):
            cells = (line or "").split(" ")
            # The first line of word2vec's tells how many words and numbers there are.
            if number > 1 or len(cells) != 2 or not all(map(str.isdecimal, cells)):
                yield cells[0]
    except Broken as broken:
        problem = broken.problem
        raise UserError(problem.text, problem.place, problem.remedy) from broken


def with_words(proto: bytes, words: Iterable[str], size: int) -> bytes:
    """A model of whole words with further words behind its own, up to so many pieces.

    Each is taken as the model itself would write it; what it cuts is left out.
    """
    model = parsed(proto)
    normal = sentencepiece.SentencePieceNormalizer(model_proto=proto)
    known = {piece.piece for piece in model.pieces}
    least = min((piece.score for piece in model.pieces), default=0.0)
    for word in words:
        if len(model.pieces) >= size:
            break
        piece = normal.normalize(word)
        if piece.count(_MARK) == 1 and len(piece) > 1 and piece not in known:
            known.add(piece)
            least -= 1e-3  # rarer than all before it
            model.pieces.add(piece=piece, score=least)
    model.trainer_spec.vocab_size = len(model.pieces)
    return model.SerializeToString()
