"""MarianMT models, such as OPUS-MT, in a folder as Hugging Face's Transformers writes it.

Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; Tiedemann and
Thottingal 2020, "OPUS-MT - Building open translation services for the World".
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.components.importing.foreign_model import ForeignModel
from regard.components.importing.huggingface_folder import HuggingFaceConfig, read_json, texts_by_id
from regard.components.importing.huggingface_weights import HuggingFaceWeights, TokenTable
from regard.components.importing.tokenizer_files import ordinary_tokens, read_tokenizer, renumber
from regard.components.importing.weight_files import find_weights, open_weights
from regard.components.settings.trainer import TrainerConfig
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
    is_shared = config.get("share_encoder_decoder_embeddings", True)
    vocabularies = _read_vocabularies(config, is_shared)
    languages = {
        token: match[1]
        for token in vocabularies["source"].values()
        if (match := _LANGUAGE.fullmatch(token))
    }
    pad = config.token("pad_token_id")
    vocabulary_file = folder / _VOCABULARIES["source"]
    special = {PAD: pad, UNK: _id_of(vocabularies["source"], "<unk>", vocabulary_file)}
    special[EOS] = config.token("eos_token_id")
    config.expect("decoder_start_token_id", pad)
    symbols = {
        text: code
        for code, language in languages.items()
        for text in user_symbols([language], "unigram")
    }
    ids = {text: number for number, text in vocabularies["source"].items()}
    models = {side: read_tokenizer(folder / name) for side, name in _MODELS.items()}
    missing = {side: _missing(models[side], vocabularies[side]) for side in models}
    if is_shared:  # tied matrices need the same tokens on both sides
        both = list(dict.fromkeys([*missing["source"], *missing["target"]]))
        missing = dict.fromkeys(models, both)
    tables = {
        side: TokenTable.create(
            vocabulary,
            special,
            pad,
            missing[side],
            {text: ids[code] for text, code in symbols.items()}
            if side == "source" or is_shared
            else {},
        )
        for side, vocabulary in vocabularies.items()
    }
    tokenizers = {
        side: renumber(folder / _MODELS[side], model, tables[side])
        for side, model in models.items()
    }
    settings = {
        "task": "translation",
        "model": _model_section(config, is_shared),
        "search": config.search(config.integer("max_position_embeddings", 512, minimum=2), 0.0),
        "training": {},
        "tags": {"names": list(languages.values())} if languages else None,
    }
    weights = find_weights(folder)
    sides = {"encoder": tables["source"], "decoder": tables["target"]}
    never = [PAD] if config.renormalizes else []
    return ForeignModel(
        kind="marian",
        folder=folder,
        config=TrainerConfig.model_validate(settings),
        tokenizers=tokenizers,
        read_weight=HuggingFaceWeights(
            open_weights(weights), weights, sides, never, settings["model"]
        ),
        files=[*config.files, *_MODELS.values(), *_vocabulary_files(is_shared), weights.name],
        licence=config.licence(),
    )


def _model_section(config: HuggingFaceConfig, is_shared: bool) -> dict[str, Any]:
    is_tied = config.get("tie_word_embeddings", True)
    tied = "none" if not is_tied else "all" if is_shared else "output"
    options = {"norm": "post", "positions": "sinusoidal_marian"}
    return {
        "embedding": config.size("d_model"),
        "dropout": config.number("dropout", 0.1),
        "tie_embeddings": tied,
        "scale_embeddings": bool(config.get("scale_embedding", False)),
        "encoder": config.layers("encoder", **options),
        "decoder": config.layers("decoder", **options),
        "attention": {"score": "scaled_dot"},
    }


def _vocabulary_files(is_shared: bool) -> list[str]:
    return [_VOCABULARIES["source"]] if is_shared else [*_VOCABULARIES.values()]


def _read_vocabularies(config: HuggingFaceConfig, is_shared: bool) -> dict[str, dict[int, str]]:
    """Return the text of each id of both sides."""

    def read(side: str, size: int) -> dict[int, str]:
        path = config.folder / _VOCABULARIES[side]
        return texts_by_id(read_json(path), size, path)

    size = config.integer("vocab_size", minimum=4)
    source = read("source", size)
    if is_shared:
        return {"source": source, "target": source}
    size = config.integer("decoder_vocab_size", size, minimum=4)
    return {"source": source, "target": read("target", size)}


def _missing(model: bytes, vocabulary: Mapping[int, str]) -> list[str]:
    """Return the tokens of a SentencePiece model that are not in a vocabulary."""
    known = set(vocabulary.values())
    return [text for text in ordinary_tokens(model) if text not in known]


def _id_of(vocabulary: Mapping[int, str], text: str, path: Path) -> int:
    for number, other in vocabulary.items():
        if other == text:
            return number
    raise UserError(f"The vocabulary has no {text}.", str(path), "Fetch the file again.")
