"""The section ``tokenizer``: how text becomes tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import Self

from regard.models.settings.base import Listed, Positive, Section, absolute, option


class TokenizerConfig(Section):
    """The SentencePiece tokenizers, trained on the train split."""

    type: Literal["unigram", "bpe", "char", "word"] = option(
        "unigram", "Type of the SentencePiece model."
    )
    vocab_size: Annotated[int, Field(ge=5, le=1_000_000)] = option(
        8000, "Vocabulary size of each tokenizer, including the four special tokens."
    )
    shared: bool = option(False, "Use one tokenizer for source and target.")
    character_coverage: Annotated[float, Field(ge=0.9, le=1.0)] = option(
        1.0,
        "Share of characters in the vocabulary; the rest is unknown. 0.9995 for languages with "
        "thousands of characters.",
    )
    vocab_limit: Literal["hard", "soft"] = option(
        "soft",
        "If the corpus is too small for vocab_size: hard fails, soft uses a smaller vocabulary.",
    )
    input_sentence_size: Positive = option(
        1000000, "Maximum number of sentences to train on; larger corpora are sampled by hash."
    )
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = option(
        "nmt_nfkc", "Unicode normalization before tokenization; _cf also folds case."
    )
    punctuation: Literal["keep", "split"] = option(
        "keep",
        "split: separate punctuation from words, as word vectors need it; it is not joined again "
        "in outputs.",
    )
    word_list: str | None = option(
        None,
        "File of words or word vectors, .txt or .gz, whose words are added to those of train, up "
        "to vocab_size; only for type: word. null: none.",
    )
    user_defined_symbols: Listed[Annotated[str, Field(min_length=1)]] = option(
        (), "Strings that are always one token, for example <date>."
    )
    byte_fallback: bool = option(
        False, "Encode unknown characters as bytes (256 additional tokens)."
    )

    def resolved(self, base: Path) -> Self:
        """A copy whose path is absolute."""
        return self.model_copy(
            update={"word_list": self.word_list and absolute(base, self.word_list)}
        )
