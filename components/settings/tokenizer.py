"""The section ``tokenizer``: how text becomes tokens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import Self

from regard.core.bounds import Positive
from regard.models.settings.base import Listed, Problem, Section, absolute


class TokenizerConfig(Section):
    """The SentencePiece tokenizers, trained on the train split.

    Attributes:
        type: Type of the SentencePiece model.
        vocab_size: Vocabulary size of each tokenizer, including the four special tokens.
        shared: Use one tokenizer for source and target.
        character_coverage: Share of characters in the vocabulary; the rest is unknown. 0.9995 for
            languages with thousands of characters.
        vocab_limit: If the corpus is too small for vocab_size: hard fails, soft uses a smaller
            vocabulary.
        input_sentence_size: Maximum number of sentences to train on; larger corpora are sampled by
            hash.
        normalization: Unicode normalization before tokenization; _cf also folds case. U+200C stays
            between letters if the training text has it there.
        punctuation: split: separate punctuation from words, as word vectors need it; it is not
            joined again in outputs.
        word_list: File of words or word vectors, .txt or .gz, whose words are added to those of
            train, up to vocab_size; only for type: word. null: none.
        user_defined_symbols: Strings that are always one token, for example <date>.
        byte_fallback: Encode unknown characters as bytes (256 additional tokens).
    """

    type: Literal["unigram", "bpe", "char", "word"] = "unigram"
    vocab_size: Annotated[int, Field(ge=5, le=1_000_000)] = 8000
    shared: bool = False
    character_coverage: Annotated[float, Field(ge=0.9, le=1.0)] = 1.0
    vocab_limit: Literal["hard", "soft"] = "soft"
    input_sentence_size: Positive = 1000000
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = "nmt_nfkc"
    punctuation: Literal["keep", "split"] = "keep"
    word_list: str | None = None
    user_defined_symbols: Listed[Annotated[str, Field(min_length=1)]] = ()
    byte_fallback: bool = False

    def own_problems(self) -> Iterator[Problem]:
        """Yield repeated symbols, and a word list that is not used."""
        if len(set(self.user_defined_symbols)) < len(self.user_defined_symbols):
            yield Problem(("user_defined_symbols",), "a symbol is listed twice")
        if self.word_list is not None and self.type != "word":
            yield Problem(("word_list",), "needs tokenizer.type: word")

    def resolved(self, base: Path) -> Self:
        """A copy whose path is absolute."""
        return self.model_copy(
            update={"word_list": self.word_list and absolute(base, self.word_list)}
        )
