"""MarianMT models, such as OPUS-MT, in a folder as Hugging Face's Transformers writes it.

Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; Tiedemann and
Thottingal 2020, "OPUS-MT - Building open translation services for the World".
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.components.importing.foreign_model import ForeignModel, create_config
from regard.components.importing.huggingface_folder import HuggingFaceConfig, read_json, texts_by_id
from regard.components.importing.huggingface_weights import HuggingFaceWeights, TokenTable
from regard.components.importing.tokenizer_files import missing_tokens, read_tokenizer, renumber
from regard.components.importing.weight_files import find_weights, open_weights
from regard.core.errors import UserError
from regard.models.tags import user_symbols
from regard.models.vocabulary import EOS, PAD, UNK

_VOCABULARIES = {"source": "vocab.json", "target": "target_vocab.json"}
_MODELS = {"source": "source.spm", "target": "target.spm"}
_LANGUAGE = re.compile(r">>([A-Za-z0-9][A-Za-z0-9._-]*)<<")
# Settings that other models of the same classes may have, and the only supported values.
_EXPECTED: dict[str, tuple[Any, ...]] = {
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "static_position_embeddings": (True,),
    "add_bias_logits": (False,),
    "extra_pos_embeddings": (0,),
    "is_encoder_decoder": (True,),
}


def read_marian(folder: Path) -> ForeignModel:
    """Read a folder with ``config.json``, weights, ``source.spm``, ``target.spm``, ``vocab.json``.

    The vocabularies get Regard's ids. A language code such as ``>>deu<<`` becomes the tag ``deu``.

    Raises:
        UserError: a file is missing or damaged, or the model computes something else than the
            Transformers of Regard.
    """
    config = HuggingFaceConfig(folder, "marian")
    for name, values in _EXPECTED.items():
        config.expect(name, *values)
    if config.token("decoder_start_token_id") != config.token("pad_token_id"):
        raise config.error("decoder_start_token_id", "is not that of the padding")
    vocabularies = _read_vocabularies(config)
    languages = [
        match[1]
        for text in vocabularies["source"].texts.values()
        if (match := _LANGUAGE.fullmatch(text))
    ]
    tables, tokenizers = _number_tokens(config, vocabularies, languages)
    settings: dict[str, Any] = {
        "task": "translation",
        "model": _model_section(config),
        "search": config.search(config.integer("max_position_embeddings", 512, minimum=2), 0.0),
        "training": {},
        "tags": {"names": languages} if languages else None,
    }
    weights = find_weights(folder)
    names = {vocabulary.path.name for vocabulary in vocabularies.values()}
    return ForeignModel(
        kind="marian",
        folder=folder,
        config=create_config(settings, folder / "config.json"),
        tokenizers=tokenizers,
        read_weight=HuggingFaceWeights(
            open_weights(weights),
            weights,
            {"encoder": tables["source"], "decoder": tables["target"]},
            [PAD] if config.renormalizes else [],
            settings["model"],
        ),
        files=[*config.files, *_MODELS.values(), *sorted(names), weights.name],
        licence=config.licence(),
    )


class _Vocabulary(NamedTuple):
    """The text of each id, and the file that has them."""

    texts: Mapping[int, str]
    path: Path

    def id_of(self, text: str) -> int:
        for number, other in self.texts.items():
            if other == text:
                return number
        raise UserError(f"The file has no {text}.", str(self.path), "Fetch the file again.")


def _has_shared_vocabulary(config: HuggingFaceConfig) -> bool:
    return config.boolean("share_encoder_decoder_embeddings", True)


def _read_vocabularies(config: HuggingFaceConfig) -> dict[str, _Vocabulary]:
    """Return the vocabularies of both sides."""

    def read(side: str, size: int) -> _Vocabulary:
        path = config.folder / _VOCABULARIES[side]
        return _Vocabulary(texts_by_id(read_json(path), size, path), path)

    size = config.integer("vocab_size", minimum=4)
    source = read("source", size)
    if _has_shared_vocabulary(config):
        return {"source": source, "target": source}
    size = config.integer("decoder_vocab_size", size, minimum=4)
    return {"source": source, "target": read("target", size)}


def _number_tokens(
    config: HuggingFaceConfig, vocabularies: Mapping[str, _Vocabulary], languages: Sequence[str]
) -> tuple[dict[str, TokenTable], dict[str, bytes]]:
    """Return the tokens of both sides with Regard's ids, and the SentencePiece models with these.

    Args:
        config: the settings.
        vocabularies: the vocabularies of both sides.
        languages: the languages that have a code.
    """
    folder, is_shared = config.folder, _has_shared_vocabulary(config)
    pad, end = config.token("pad_token_id"), config.token("eos_token_id")
    codes = {
        text: vocabularies["source"].id_of(f">>{language}<<")
        for language in languages
        for text in user_symbols([language], "unigram")
    }
    models = {side: read_tokenizer(folder / name) for side, name in _MODELS.items()}
    missing = {
        side: missing_tokens(model, vocabularies[side].texts.values(), vocabularies[side].path)
        for side, model in models.items()
    }
    symbols = {"source": codes, "target": {}}
    if is_shared:  # tied matrices need the same tokens on both sides
        both = list(dict.fromkeys([*missing["source"], *missing["target"]]))
        missing, symbols = dict.fromkeys(models, both), dict.fromkeys(models, codes)
    tables, tokenizers = {}, {}
    for side, vocabulary in vocabularies.items():
        special = {PAD: pad, UNK: vocabulary.id_of("<unk>"), EOS: end}
        tables[side] = TokenTable.create(
            vocabulary.texts, special, pad, missing[side], symbols[side]
        )
        tokenizers[side] = renumber(folder / _MODELS[side], models[side], tables[side])
    return tables, tokenizers


def _model_section(config: HuggingFaceConfig) -> dict[str, Any]:
    tied = "all" if _has_shared_vocabulary(config) else "output"
    options = {"norm": "post", "positions": "sinusoidal_marian"}
    return {
        "embedding": config.size("d_model"),
        "dropout": config.number("dropout", 0.1),
        "tie_embeddings": tied if config.boolean("tie_word_embeddings", True) else "none",
        "scale_embeddings": config.boolean("scale_embedding", False),
        "encoder": config.layers("encoder", **options),
        "decoder": config.layers("decoder", **options),
        "attention": {"score": "scaled_dot"},
    }
