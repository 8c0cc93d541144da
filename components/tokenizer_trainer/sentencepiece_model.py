"""The call of SentencePiece's trainer, and its errors in the user's words."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import sentencepiece

from components.tokenizer_trainer.normalization import splitting_rules
from components.tokenizer_trainer.proto import parsed
from components.tokenizer_trainer.sentences import LONGEST
from components.tokenizer_trainer.words import with_words, words_of
from models.vocabulary import BOS, EOS, PAD, UNK

# The number of threads changes how sums are rounded, and so the pieces; a fixed one makes the
# same tokenizer on every machine.
_THREADS = 4

_ERRORS_ONLY = 2

_TOO_LARGE = re.compile(r"Vocabulary size too high \(\d+\)\. Please set it to a value <= (\d+)")
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


class VocabularyTooLarge(Exception):
    """The corpus does not allow so many pieces; ``most`` is what it does allow."""

    def __init__(self, most: int):
        super().__init__(most)
        self.most = most


class VocabularyTooSmall(Exception):
    """Not even the single characters have room; ``least`` is what they need."""

    def __init__(self, least: int):
        super().__init__(least)
        self.least = least


@dataclass(frozen=True)
class Trained:
    """A SentencePiece model: the serialized proto, and its pieces with their scores."""

    proto: bytes
    pieces: list[tuple[str, float]]


def train(sentences: Iterable[bytes], settings: Mapping[str, Any]) -> Trained:
    """Trains a model with pad 0, unk 1, bos 2, eos 3.

    Args:
        sentences: UTF-8 text without line ends.
        settings: the ``tokenizer`` section.

    Raises:
        VocabularyTooLarge: ``vocab_limit`` is hard and ``vocab_size`` more than possible.
        VocabularyTooSmall: ``vocab_size`` is less than the characters need.
        UserError: the file of ``words`` cannot be read.
    """
    proto = _trained(sentences, settings)
    if settings["words"] is not None:
        proto = with_words(proto, words_of(settings["words"]), settings["vocab_size"])
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    ids = range(model.get_piece_size())
    return Trained(proto, [(model.id_to_piece(i), model.get_score(i)) for i in ids])


def _trained(sentences: Iterable[bytes], settings: Mapping[str, Any]) -> bytes:
    proto = io.BytesIO()
    with _rules(settings) as rules:
        _train(sentences, settings, rules, proto)
    return _without_path(proto.getvalue())


def _without_path(proto: bytes) -> bytes:
    """The model without the name of its rules' file, another one every time; they are in it."""
    model = parsed(proto)
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    return model.SerializeToString()


@contextlib.contextmanager
def _rules(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """How SentencePiece's trainer is told the normalization."""
    name = settings["normalization"]
    if settings["punctuation"] == "keep":
        yield {"normalization_rule_name": name}
        return
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        file.write(splitting_rules(name))
        file.flush()
        yield {"normalization_rule_tsv": file.name}


def _train(
    sentences: Iterable[bytes], settings: Mapping[str, Any], rules: dict[str, Any], proto: IO[bytes]
) -> None:
    # Words that are added fill what the corpus leaves of the vocabulary.
    hard = settings["vocab_limit"] == "hard" and settings["words"] is None
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=proto,
            model_type=settings["type"],
            vocab_size=settings["vocab_size"],
            character_coverage=settings["character_coverage"],
            hard_vocab_limit=hard,
            **rules,
            user_defined_symbols=list(settings["special_pieces"]),
            byte_fallback=settings["byte_fallback"],
            max_sentence_length=LONGEST,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=_THREADS,
            minloglevel=_ERRORS_ONLY,
        )
    except RuntimeError as error:
        if match := _TOO_LARGE.search(str(error)):
            raise VocabularyTooLarge(int(match[1])) from None
        if match := _TOO_SMALL.search(str(error)):
            raise VocabularyTooSmall(int(match[1])) from None
        raise
