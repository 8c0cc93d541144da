"""The section ``tokenizer``: how text becomes pieces."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.base import Listed, Positive, Section


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
    special_pieces: Listed[Annotated[str, Field(min_length=1)]] = Field(
        default=(), description="Strings that always are one piece, such as <date>."
    )
    byte_fallback: bool = Field(
        default=False,
        description="Whether unknown characters are cut into bytes (256 more pieces) and so "
        "survive.",
    )
