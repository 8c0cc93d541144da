"""The tokenizers of the small models of `huggingface_models`, and the sentences for them."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transformers
from transformers.models.m2m_100 import tokenization_m2m_100

from benchmarks.peers.huggingface_configurations import Configuration
from benchmarks.peers.huggingface_text import Language, tokens_of, train_sentencepiece

_TRAINING_SENTENCES = 400


@dataclass(frozen=True)
class TokenizerSettings:
    """What a tokenizer determines of the other files.

    Attributes:
        model_settings: settings of config.json.
        generation_settings: settings of generation_config.json.
    """

    model_settings: dict[str, Any]
    generation_settings: dict[str, Any]


def write_tokenizer(folder: Path, configuration: Configuration) -> TokenizerSettings:
    """Train and write the tokenizer of a model, as ``save_pretrained`` does."""
    if configuration.family == "marian":
        return _write_marian(folder, configuration)
    if configuration.family == "m2m":
        return _write_m2m(folder, configuration)
    return _write_nllb(folder, configuration)


def test_sentences(configuration: Configuration, count: int) -> list[dict[str, str]]:
    """Return sentences to translate, with their languages if the model has several."""
    chance = random.Random(0)
    if configuration.family == "marian":
        texts = Language("north").sentences(count, "test")
        if configuration.languages:
            texts = [f"{chance.choice(configuration.languages)} {text}" for text in texts]
        return [{"source": text} for text in texts]
    sentences = []
    names = ("north", "south", "east")
    texts_of = {name: Language(name).sentences(count, "test") for name in names}
    for index in range(count):
        source, target = chance.sample(configuration.languages, 2)
        name = names[configuration.languages.index(source) % len(names)]
        sentence = {"source": texts_of[name][index], "source_language": source}
        sentences.append({**sentence, "target_language": target})
    return sentences


def language_token(tokenizer: transformers.PreTrainedTokenizerBase, language: str) -> str:
    """Return the token of a language: ``__de__`` of ``de``, ``deu_Latn`` of ``deu_Latn``."""
    if isinstance(tokenizer, transformers.M2M100Tokenizer):
        return str(tokenizer.get_lang_token(language))
    return language


def _write_marian(folder: Path, configuration: Configuration) -> TokenizerSettings:
    size = configuration.spm_size
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary)
        for side, name in (("source", "north"), ("target", "south")):
            sentences = Language(name).sentences(_TRAINING_SENTENCES, "training")
            if size > 1000:
                sentences = _syllables(size)
            train_sentencepiece(inputs / f"{side}.spm", sentences, size, **configuration.spm)
        source, target = (tokens_of(inputs / f"{side}.spm") for side in ("source", "target"))
        separate = configuration.vocabularies == "separate"
        more = [*configuration.more_tokens, *configuration.languages]
        if separate:
            vocabulary, target_vocabulary = _two_vocabularies(source, target, configuration)
            _write_json(inputs / "target_vocab.json", target_vocabulary)
        else:
            tokens = _ordinary([*source, *target])
            del tokens[: configuration.without_tokens]
            tokens += more
            tokens += [f"▁unused{i}" for i in range(_missing(configuration, len(tokens) + 3))]
            vocabulary = _with_ids(["</s>", "<unk>", *tokens, "<pad>"])
        _write_json(inputs / "vocab.json", vocabulary)
        transformers.MarianTokenizer(
            str(inputs / "source.spm"),
            str(inputs / "target.spm"),
            str(inputs / "vocab.json"),
            target_vocab_file=str(inputs / "target_vocab.json") if separate else None,
            source_lang="north",
            target_lang="south",
            separate_vocabs=separate,
        ).save_pretrained(folder)
    pad = vocabulary["<pad>"]
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad}
    ends = {"eos_token_id": 0, "forced_eos_token_id": 0}
    model = {**ids, **ends, "vocab_size": len(vocabulary)}
    if separate:
        model["decoder_vocab_size"] = len(target_vocabulary)
    return TokenizerSettings(model, {**ids, **ends, "bad_words_ids": [[pad]]})


def _two_vocabularies(
    source: list[str], target: list[str], configuration: Configuration
) -> tuple[dict[str, int], dict[str, int]]:
    """Vocabularies with one id of the padding token; without ties, of one size, as converted."""
    first, second = _ordinary(source), _ordinary(target)
    shorter = min(len(first), len(second))
    if configuration.model.get("tie_word_embeddings", True):
        first = first[: shorter - 5]
        tail = second[len(first) :]
        second = second[: len(first)]
    else:
        first, second, tail = first[:shorter], second[:shorter], []
    vocabulary = _with_ids(["</s>", "<unk>", *first, "<pad>"])
    return vocabulary, _with_ids(["</s>", "<unk>", *second, "<pad>", *tail])


def _write_m2m(folder: Path, configuration: Configuration) -> TokenizerSettings:
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary)
        model, vocabulary = inputs / "sentencepiece.bpe.model", inputs / "vocab.json"
        train_sentencepiece(model, _mixed(), configuration.spm_size, **configuration.spm)
        tokens = _ordinary(tokens_of(model))
        del tokens[: configuration.without_tokens]
        tokens = ["<s>", "<pad>", "</s>", "<unk>", *tokens, *configuration.more_tokens]
        _write_json(vocabulary, _with_ids(tokens))
        codes = tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES[configuration.language_codes]
        transformers.M2M100Tokenizer(
            str(vocabulary),
            str(model),
            language_codes=configuration.language_codes,
            model_max_length=1024,
            # The repositories list them; without a list, decoding does not skip them.
            additional_special_tokens=[f"__{code}__" for code in codes],
        ).save_pretrained(folder)
    size = len(tokens) + len(codes) + configuration.unused_rows
    return TokenizerSettings({"vocab_size": size}, _m2m_ids())


def _write_nllb(folder: Path, configuration: Configuration) -> TokenizerSettings:
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary)
        model = inputs / "sentencepiece.bpe.model"
        train_sentencepiece(model, _mixed(), configuration.spm_size, **configuration.spm)
        languages = list(configuration.languages)
        converted = transformers.NllbTokenizer.from_pretrained(
            inputs, extra_special_tokens=languages
        )
        merges = json.loads(converted.backend_tokenizer.to_str())["model"]["merges"]
        # The order of the published models. The conversion of Transformers 5 has the mask first.
        tokens = ["<s>", "<pad>", "</s>", "<unk>", *_ordinary(tokens_of(model)), *languages]
        vocabulary = _with_ids([*tokens, "<mask>"])
        tokenizer = transformers.NllbTokenizer(
            vocab=vocabulary,
            merges=[tuple(merge) for merge in merges],
            extra_special_tokens=languages,
            model_max_length=1024,
        )
        if tokenizer.get_vocab() != vocabulary:
            raise SystemExit("the tokenizer changed the ids")
        tokenizer.save_pretrained(folder)
        # The published models have these files of Transformers 4, too.
        (folder / model.name).write_bytes(model.read_bytes())
        special = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "pad": "<pad>", "sep": "</s>"}
        names: dict[str, Any] = {f"{name}_token": token for name, token in special.items()}
        names["unk_token"] = "<unk>"
        mask = {"content": "<mask>", "lstrip": True, "normalized": True}
        names["mask_token"] = {**mask, "rstrip": False, "single_word": False}
        names["additional_special_tokens"] = languages
        _write_json(folder / "special_tokens_map.json", dict(sorted(names.items())))
    size = len(vocabulary) + configuration.unused_rows
    return TokenizerSettings({"vocab_size": size}, _m2m_ids())


def _m2m_ids() -> dict[str, int]:
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    return {**ids, "decoder_start_token_id": 2}


def _mixed() -> list[str]:
    names = ("north", "south", "east")
    return [
        sentence
        for name in names
        for sentence in Language(name).sentences(_TRAINING_SENTENCES, "training")
    ]


def _syllables(size: int) -> list[str]:
    """Sentences with enough words for a large vocabulary."""
    chance = random.Random(0)
    letters = "abcdefghijklmnoprstuvwz"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(size)]
    return [" ".join(chance.choices(words, k=10)) for _ in range(size)]


def _ordinary(tokens: list[str]) -> list[str]:
    """Distinct tokens without the special ones."""
    return [token for token in dict.fromkeys(tokens) if token not in ("<unk>", "<s>", "</s>")]


def _with_ids(tokens: list[str]) -> dict[str, int]:
    return {token: index for index, token in enumerate(tokens)}


def _missing(configuration: Configuration, tokens: int) -> int:
    return max(0, int(configuration.model.get("vocab_size", 0)) - tokens)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")
