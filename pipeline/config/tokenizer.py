"""The section ``tokenizer``: how text becomes pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from models.settings.base import Listed, Positive, Section, absolute


class Tokenizer(Section):
    """How text becomes pieces: SentencePiece, trained on the train split."""

    type: Literal["unigram", "bpe", "char", "word"] = Field(
        default="unigram", description="How SentencePiece finds the pieces."
    )
    vocab_size: Annotated[int, Field(ge=5)] = Field(
        default=8000, description="Pieces of each tokenizer, the four special ones included."
    )
    shared: bool = Field(
        default=False, description="Whether source and target share one tokenizer."
    )
    character_coverage: Annotated[float, Field(ge=0.9, le=1.0)] = Field(
        default=1.0,
        description="Share of the characters that get a piece; the rest is unknown. 0.9995 for "
        "languages with thousands of characters.",
    )
    vocab_limit: Literal["hard", "soft"] = Field(
        default="hard",
        description="Where the corpus does not allow so many pieces: refuse, or take fewer.",
    )
    sample: Positive = Field(
        default=1000000,
        description="Sentences to train on at most; of more, a hashed sample is taken.",
    )
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = Field(
        default="nmt_nfkc",
        description="Unicode normalization of the text before it is cut; _cf also folds case.",
    )
    punctuation: Literal["keep", "split"] = Field(
        default="keep",
        description="Whether signs of punctuation stay with their words, or are words of their "
        "own, as word vectors need it; what is split is not put together again.",
    )
    words: str | None = Field(
        default=None,
        description="File of words or of word vectors, .txt or .gz; its words are added to those "
        "of the train split, up to vocab_size; for type word. null: none.",
    )
    special_pieces: Listed[Annotated[str, Field(min_length=1)]] = Field(
        default=(), description="Strings that always are one piece, such as <date>."
    )
    byte_fallback: bool = Field(
        default=False,
        description="Whether unknown characters are cut into bytes (256 more pieces) and so "
        "survive.",
    )

    def resolved(self, base: Path) -> Self:
        """A copy whose path is absolute."""
        return self.model_copy(
            update={"words": None if self.words is None else absolute(base, self.words)}
        )
