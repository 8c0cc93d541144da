"""M2M-100 and NLLB models in a folder as Hugging Face's Transformers writes it.

Fan et al. 2021, "Beyond English-Centric Multilingual Machine Translation"; NLLB Team 2022, "No
Language Left Behind: Scaling Human-Centered Machine Translation".
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.importing.foreign_model import ForeignModel
from regard.components.importing.huggingface_folder import (
    HuggingFaceConfig,
    read_json,
    read_token_ids,
    texts_by_id,
)
from regard.components.importing.huggingface_weights import HuggingFaceWeights, TokenTable
from regard.components.importing.tokenizer_files import ordinary_tokens, read_tokenizer, renumber
from regard.components.importing.weight_files import find_weights, read_tensors
from regard.components.settings.trainer import TrainerConfig
from regard.core.errors import UserError
from regard.core.suggestions import suggest
from regard.models.tags import user_symbols
from regard.models.vocabulary import EOS, PAD, SPACE, UNK

_MODEL, _VOCABULARY, _FAST = "sentencepiece.bpe.model", "vocab.json", "tokenizer.json"
# fairseq, where the models come from, numbers positions from the id of the padding plus 1.
_PADDING = 1
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
    vocabulary, vocabulary_file = _read_vocabulary(config)
    by_text = {text: number for number, text in vocabulary.items()}
    special = {PAD: _PADDING, UNK: by_text.get("<unk>", 3), EOS: config.token("eos_token_id", 2)}
    start = config.token("decoder_start_token_id", special[EOS])
    languages = _find_languages(config, by_text, pairs)

    tags = ["-".join(pair) for pair in pairs]
    symbols = user_symbols(tags, "bpe")
    rows = {tag: languages[source] for tag, (source, _) in zip(tags, pairs, strict=True)}
    copies = [(f"{space}<{tag}>", rows[tag]) for tag in tags for space in (SPACE, "")]
    model = read_tokenizer(folder / _MODEL)
    missing = [text for text in ordinary_tokens(model) if text not in by_text]
    unknown = [(text, special[UNK]) for text in missing]
    table = TokenTable.create(vocabulary, special, start, [*copies, *unknown])
    tokenizer = renumber(folder / _MODEL, model, table.tokens, symbols)

    ids = {text: number for number, text in table.texts_by_id().items()}
    targets = {tag: table.id_of(languages[target]) for tag, (_, target) in zip(tags, pairs)}
    first_tokens = [
        (ids[f"{space}<{tag}>"], targets[tag]) for tag in tags for space in (SPACE, "")
    ]
    settings = {
        "task": "translation",
        "model": {
            "embedding": config.integer("d_model", minimum=1),
            "dropout": config.number("dropout", 0.1),
            "tie_embeddings": "all",
            "scale_embeddings": bool(config.get("scale_embedding", True)),
            "encoder": config.layers("encoder", **_LAYERS),
            "decoder": config.layers("decoder", **_LAYERS),
            "attention": {"score": "scaled_dot"},
            "first_tokens": first_tokens,
        },
        "search": config.search(config.integer("max_position_embeddings", 1024, minimum=2), 1.0),
        "training": {},
        "tags": {"names": tags},
    }
    weights = find_weights(folder)
    never = [PAD] if config.renormalizes else []
    return ForeignModel(
        kind="m2m",
        folder=folder,
        config=TrainerConfig.model_validate(settings),
        tokenizers={"source": tokenizer, "target": tokenizer},
        read_weight=HuggingFaceWeights(
            read_tensors(weights), weights, {"encoder": table, "decoder": table}, never
        ),
        files=[*config.files, _MODEL, vocabulary_file, weights.name],
        licence=config.licence(),
    )


_LAYERS = {
    "norm": "pre",
    "positions": "sinusoidal_tensor2tensor",
    "first_position": _PADDING + 1,
}


def _read_vocabulary(config: HuggingFaceConfig) -> tuple[Mapping[int, str], str]:
    """Return the text of each id, and the name of the file that has it.

    M2M-100 has ``vocab.json`` without the language codes, and the folder says them elsewhere; NLLB
    has everything in ``tokenizer.json``.
    """
    folder, size = config.folder, config.integer("vocab_size", minimum=4)
    if (folder / _FAST).is_file():
        content = read_json(folder / _FAST)
        ids = dict(content.get("model", {}).get("vocab", {}))
        ids |= {token["content"]: token["id"] for token in content.get("added_tokens", ())}
        return texts_by_id(ids, size, folder / _FAST), _FAST
    return read_token_ids(folder / _VOCABULARY, size), _VOCABULARY
