"""The section ``tokenizer``: how text becomes tokens."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from typing_extensions import Self

from regard.core.bounds import Positive
from regard.models.protected_spans import protection_symbols
from regard.models.settings.base import Listed, Problem, Section, absolute
from regard.models.tags import user_symbols

# Keys that only a training of tokenizers reads.
_TRAINING_KEYS = (
    "vocab_size",
    "character_coverage",
    "vocab_limit",
    "punctuation",
    "word_list",
    "byte_fallback",
)


def _files_tag(value: Any) -> str | None:
    """Return which variant of `_Files` a value is; None: neither."""
    if isinstance(value, str):
        return "[path]"
    return "[paths]" if isinstance(value, dict) else None


_Path = Annotated[str, Field(min_length=1)]
# A tag in brackets is no part of a key in messages.
_Files = Annotated[
    Annotated[_Path, Tag("[path]")] | Annotated[dict[str, _Path], Tag("[paths]")],
    Discriminator(
        _files_tag,
        custom_error_type="path_or_paths",
        custom_error_message="A path, or a path for each side such as {source: a.model, target: "
        "b.model}, is expected",
    ),
]


class TokenizerConfig(Section):
    """The SentencePiece tokenizers, trained on the train split or read from files.

    Attributes:
        model: SentencePiece model to use instead of training one: the path of one file, which
            all texts share, or a mapping from source and target to their files. type and
            normalization must be those of the file. null: tokenizers are trained.
        type: Type of the SentencePiece model.
        vocab_size: Vocabulary size of each tokenizer, including the four special tokens.
        shared: Use one tokenizer for source and target. With model, true for one file.
        character_coverage: Share of characters in the vocabulary; the rest is unknown. 0.9995 for
            languages with thousands of characters.
        vocab_limit: If the corpus is too small for vocab_size: hard fails, soft uses a smaller
            vocabulary.
        input_sentence_size: Maximum number of sentences to train on; larger corpora are sampled by
            hash. With model, at most 20,000 are read to measure its coverage.
        normalization: Unicode normalization before tokenization; _cf also folds case. U+200C stays
            between letters if the training text has it there.
        punctuation: split: separate punctuation from words, as word vectors need it; it is not
            joined again in outputs.
        word_list: File of words or word vectors, .txt or .gz, whose words are added to those of
            train, up to vocab_size; only for type: word. null: none.
        user_defined_symbols: Strings that are always one token, for example <date>.
        byte_fallback: Encode unknown characters as bytes (256 additional tokens).
    """

    model: _Files | None = None
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

    @model_validator(mode="before")
    @classmethod
    def _share_one_file(cls, values: Any) -> Any:
        """Derive ``shared`` from ``model``, unless it is given."""
        if isinstance(values, dict) and values.get("model") and "shared" not in values:
            return {**values, "shared": _is_one_file(values["model"])}
        return values

    def own_problems(self) -> Iterator[Problem]:
        """Yield repeated symbols, unused word lists, and keys that do not suit a given model."""
        if len(set(self.user_defined_symbols)) < len(self.user_defined_symbols):
            yield Problem(("user_defined_symbols",), "a symbol is listed twice")
        if self.word_list is not None and self.type != "word":
            yield Problem(("word_list",), "needs tokenizer.type: word")
        if self.model is None:
            return
        for name in _TRAINING_KEYS:
            if getattr(self, name) != type(self).model_fields[name].default:
                message = "applies to tokenizers that Regard trains; remove it, or tokenizer.model"
                yield Problem((name,), message)
        if self.shared != _is_one_file(self.model):
            message = "one file of tokenizer.model is shared, and two are not; remove it"
            yield Problem(("shared",), message)

    def model_paths(self, features: Sequence[str]) -> dict[str, str]:
        """Return the path of the given model of each text feature; empty without ``model``."""
        if self.model is None or isinstance(self.model, str):
            return dict.fromkeys(features, self.model) if self.model else {}
        return {name: self.model[name] for name in features if name in self.model}

    def resolved(self, base: Path, model_base: Path | None = None) -> Self:
        """A copy whose paths are absolute.

        Args:
            base: The folder that paths are relative to.
            model_base: The same for ``model``; None: ``base``.
        """
        folder, model = model_base or base, self.model
        if isinstance(model, str):
            model = absolute(folder, model)
        elif model is not None:
            model = {name: absolute(folder, path) for name, path in model.items()}
        words = self.word_list and absolute(base, self.word_list)
        return self.model_copy(update={"model": model, "word_list": words})


def _is_one_file(model: Any) -> bool:
    """Return whether all texts have the same model."""
    return len(set(map(str, model.values()))) == 1 if isinstance(model, dict) else True


def feature_symbols(
    features: Sequence[str], tags: Iterable[str], is_protected: bool, kind: str
) -> dict[str, list[str]]:
    """Return the symbols of each text feature, in addition to ``user_defined_symbols``.

    Args:
        features: The text features of the task; tags begin the texts of the first one.
        tags: The tags of ``data.tags``.
        is_protected: Whether ``data.protect`` is used.
        kind: ``tokenizer.type``.
    """
    spans = protection_symbols() if is_protected else []
    symbols = {name: list(spans) for name in features}
    symbols[features[0]] += user_symbols(tags, kind)
    return symbols
