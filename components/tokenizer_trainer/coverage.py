"""How well a given tokenizer suits a corpus: unknown text, bytes, and tokens per word."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sentencepiece

from regard.models.vocabulary import SPACE, UNK

# Sentences that are tokenized at a time.
_BATCH = 1000


@dataclass
class Coverage:
    """Counts of a sample of sentences.

    Attributes:
        words: what spaces separate.
        tokens: all tokens.
        unknown: the unknown ones among them.
        bytes: the tokens among them that are one byte of a character.
        characters: the characters of all tokens, without spaces.
        unknown_characters: those of unknown tokens.
    """

    words: int = 0
    tokens: int = 0
    unknown: int = 0
    bytes: int = 0
    characters: int = 0
    unknown_characters: int = 0

    @property
    def unknown_share(self) -> float:
        """The share of tokens that are unknown."""
        return self.unknown / max(1, self.tokens)

    @property
    def unknown_character_share(self) -> float:
        """The share of characters in unknown tokens."""
        return self.unknown_characters / max(1, self.characters)

    @property
    def byte_share(self) -> float:
        """The share of tokens that are a byte."""
        return self.bytes / max(1, self.tokens)

    @property
    def tokens_per_word(self) -> float:
        """The mean number of tokens of a word."""
        return self.tokens / max(1, self.words)

    def describe(self) -> str:
        """Return the shares as a phrase."""
        parts = [f"{self.unknown_share:.2%} of tokens and {self.unknown_character_share:.2%} of "]
        parts.append("characters unknown, ")
        if self.bytes:
            parts.append(f"{self.byte_share:.2%} of tokens are bytes, ")
        parts.append(f"{self.tokens_per_word:.2f} tokens per word")
        return "".join(parts)


def measure_coverage(model: bytes, sentences: Iterable[bytes]) -> Coverage:
    """Tokenize sentences, and count what the vocabulary does not contain.

    Args:
        model: a serialized SentencePiece model with the ids of Regard.
        sentences: the sentences as UTF-8.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = range(processor.get_piece_size())
    lengths = np.array([_length(processor.id_to_piece(i)) for i in ids])
    is_byte = np.array([processor.is_byte(i) for i in ids])
    lengths[is_byte] = 0
    coverage = Coverage()
    remaining = iter(sentences)
    while batch := list(itertools.islice(remaining, _BATCH)):
        texts = [sentence.decode("utf-8", errors="replace") for sentence in batch]
        _count(processor, texts, lengths, is_byte, coverage)
    return coverage


def _length(token: str) -> int:
    return len(token) - token.count(SPACE)


def _count(
    processor: Any, texts: list[str], lengths: np.ndarray, is_byte: np.ndarray, coverage: Coverage
) -> None:
    rows = [np.array(ids, np.int64) for ids in processor.encode(texts, out_type=int)]
    has_unknown = [bool((row == UNK).any()) for row in rows]
    flat = np.concatenate(rows)
    coverage.words += sum(len(text.split()) for text in texts)
    coverage.tokens += len(flat)
    coverage.unknown += int((flat == UNK).sum())
    coverage.bytes += int(is_byte[flat].sum())
    coverage.characters += int(lengths[flat[flat != UNK]].sum())
    partly = [text for text, is_partly in zip(texts, has_unknown, strict=True) if is_partly]
    unknown_rows = [row for row, is_partly in zip(rows, has_unknown, strict=True) if is_partly]
    for tokens, row in zip(processor.encode(partly, out_type=str), unknown_rows, strict=True):
        # The text of an unknown token is that of the sentence.
        unknown = sum(_length(tokens[i]) for i in np.flatnonzero(row == UNK))
        coverage.unknown_characters += unknown
        coverage.characters += unknown
