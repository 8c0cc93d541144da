"""M2M-100 and NLLB models in a folder as Hugging Face's Transformers writes it.

Fan et al. 2021, "Beyond English-Centric Multilingual Machine Translation"; NLLB Team 2022, "No
Language Left Behind: Scaling Human-Centered Machine Translation".
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.components.importing.foreign_model import ForeignModel, create_config
from regard.components.importing.huggingface_folder import (
    HuggingFaceConfig,
    read_json,
    texts_by_id,
)
from regard.components.importing.huggingface_weights import HuggingFaceWeights, TokenTable
from regard.components.importing.tokenizer_files import missing_tokens, read_tokenizer, renumber
from regard.components.importing.weight_files import find_weights, open_weights
from regard.core.errors import UserError
from regard.core.suggestions import suggest
from regard.models.tags import user_symbols
from regard.models.vocabulary import EOS, PAD, UNK

_MODEL, _VOCABULARY, _FAST = "sentencepiece.bpe.model", "vocab.json", "tokenizer.json"
# fairseq, where the models come from, numbers positions from the id of the padding plus 1.
_PADDING = 1
_LAYERS = {
    "norm": "pre",
    "positions": "sinusoidal_tensor2tensor",
    "first_position": _PADDING + 1,
}
_LISTS = ("tokenizer_config.json", "special_tokens_map.json")
_OTHER_FOLDER = "Give the folder with all files of the tokenizer."
_LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}")
_EXPECTED: dict[str, tuple[Any, ...]] = {
    "pad_token_id": (_PADDING,),
    "is_encoder_decoder": (True,),
    "tie_word_embeddings": (True,),
}


def read_m2m(folder: Path, pairs: Sequence[tuple[str, str]]) -> ForeignModel:
    """Read a folder with ``config.json``, weights, the SentencePiece model and token ids.

    The model has a tag for each pair of languages, such as ``en-fr``: the encoder reads it as the
    token of the source language, and the decoder then reads the token of the target language first.

    Args:
        folder: the folder.
        pairs: the codes of the source and the target language, as the model has them.

    Raises:
        UserError: a file is missing or damaged, a language does not exist, or the model computes
            something else than the Transformers of Regard.
    """
    config = HuggingFaceConfig(folder, "m2m_100")
    for name, values in _EXPECTED.items():
        config.expect(name, *values)
    tokens = _number_tokens(config, pairs)
    settings: dict[str, Any] = {
        "task": "translation",
        "model": {
            "embedding": config.size("d_model"),
            "dropout": config.number("dropout", 0.1),
            "tie_embeddings": "all",
            "scale_embeddings": config.boolean("scale_embedding", True),
            "encoder": config.layers("encoder", **_LAYERS),
            "decoder": config.layers("decoder", **_LAYERS),
            "attention": {"score": "scaled_dot"},
            "first_tokens": tokens.first,
        },
        "search": config.search(config.integer("max_position_embeddings", 1024, minimum=2), 1.0),
        "training": {},
        "tags": {"names": ["-".join(pair) for pair in pairs]},
    }
    weights = find_weights(folder)
    return ForeignModel(
        kind="m2m",
        folder=folder,
        config=create_config(settings, folder / "config.json"),
        tokenizers={"source": tokens.tokenizer, "target": tokens.tokenizer},
        read_weight=HuggingFaceWeights(
            open_weights(weights),
            weights,
            {"encoder": tokens.table, "decoder": tokens.table},
            [PAD] if config.renormalizes else [],
            settings["model"],
        ),
        files=[*config.files, _MODEL, *tokens.files, weights.name],
        licence=config.licence(),
    )


class _Tokens(NamedTuple):
    """The tokens of both sides with Regard's ids.

    Attributes:
        table: the tokens.
        tokenizer: the SentencePiece model with these ids.
        first: the ids of each tag and of the token that the decoder then reads first.
        files: the names of the files with the ids of the model.
    """

    table: TokenTable
    tokenizer: bytes
    first: list[tuple[int, int]]
    files: list[str]


def _number_tokens(config: HuggingFaceConfig, pairs: Sequence[tuple[str, str]]) -> _Tokens:
    """Return the tokens of a model, with a tag for each pair of languages."""
    folder = config.folder
    vocabulary, files = _read_vocabulary(config)
    ids = {text: number for number, text in vocabulary.items()}
    if "<unk>" not in ids:
        message = "The vocabulary has no <unk>."
        raise UserError(message, str(folder / files[0]), "Fetch the file again.")
    special = {PAD: _PADDING, UNK: ids["<unk>"], EOS: config.token("eos_token_id", 2)}
    start = config.token("decoder_start_token_id", special[EOS])
    languages = {
        language: _find_language(config, ids, language) for pair in pairs for language in pair
    }
    # The symbols of a tag, with and without a space before it, by the pair.
    symbols = {text: pair for pair in pairs for text in user_symbols(["-".join(pair)], "bpe")}
    sources = {text: languages[source] for text, (source, _) in symbols.items()}
    model = read_tokenizer(folder / _MODEL)
    missing = missing_tokens(model, ids, folder / files[0])
    table = TokenTable.create(vocabulary, special, start, missing, sources)
    first = [
        (table.id_of_symbol(text), table.id_of(languages[target]))
        for text, (_, target) in symbols.items()
    ]
    return _Tokens(table, renumber(folder / _MODEL, model, table), first, files)


def _read_vocabulary(config: HuggingFaceConfig) -> tuple[dict[int, str], list[str]]:
    """Return the text of each id, and the names of the files that have them.

    ``tokenizer.json`` has all tokens. Otherwise, the languages follow the tokens of ``vocab.json``
    in the order in which the settings of the tokenizer list them.
    """
    folder, size = config.folder, config.integer("vocab_size", minimum=4)
    if not (folder / _VOCABULARY).is_file():
        content = read_json(folder / _FAST)
        try:
            ids = dict(content["model"]["vocab"])
            ids |= {token["content"]: token["id"] for token in content["added_tokens"]}
        except (KeyError, TypeError, ValueError):
            message = "The file has no vocabulary with ids."
            raise UserError(message, str(folder / _FAST), "Fetch the file again.") from None
        return texts_by_id(ids, size, folder / _FAST), [_FAST]
    ids = read_json(folder / _VOCABULARY)
    languages, file = _language_ids(folder, len(ids))
    ids |= languages
    return texts_by_id(ids, size, folder / file), [_VOCABULARY, file]


def _language_ids(folder: Path, first: int) -> tuple[dict[str, int], str]:
    """Return the ids of the tokens of languages, and the name of the file that lists them.

    Args:
        folder: the folder.
        first: the id of the first language, if the file has no ids.
    """
    for name in _LISTS:
        content = read_json(folder / name) if (folder / name).is_file() else {}
        if content.get("legacy_behaviour"):
            message = "legacy_behaviour: sources end with their language; import a newer folder."
            raise UserError(message, str(folder / name), _OTHER_FOLDER)
        try:
            ids = _listed_ids(content, first)
        except (KeyError, TypeError, ValueError, AttributeError):
            message = "The list of tokens cannot be read."
            raise UserError(message, str(folder / name), _OTHER_FOLDER) from None
        if ids:
            return ids, name
    message = f"Neither {' nor '.join(_LISTS)} lists the tokens of the languages."
    raise UserError(message, str(folder), _OTHER_FOLDER)


def _listed_ids(content: Mapping[str, Any], first: int) -> dict[str, int]:
    """Return the ids of the tokens that settings of a tokenizer list after its vocabulary."""
    if (added := content.get("added_tokens_decoder")) is not None:
        tokens = {str(entry["content"]): int(number) for number, entry in added.items()}
        return {text: number for text, number in tokens.items() if number >= first}
    listed = content.get("additional_special_tokens") or ()
    texts = [str(entry["content"]) if isinstance(entry, dict) else str(entry) for entry in listed]
    return {text: first + i for i, text in enumerate(texts)}


def _find_language(config: HuggingFaceConfig, ids: Mapping[str, int], language: str) -> int:
    """Return the id of the token of a language, for example of ``fr`` or ``fra_Latn``."""
    for text in (f"__{language}__", language):
        if text in ids and _LANGUAGE.fullmatch(text):
            return ids[text]
    languages = [text.strip("_") for text in ids if _LANGUAGE.fullmatch(text)]
    remedy = f"{suggest(language, languages)}."
    raise UserError(f"The model has no language {language!r}.", str(config.folder), remedy)
