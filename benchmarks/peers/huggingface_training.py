"""Train a small MarianMT model with Hugging Face's classes, and save it as an OPUS-MT folder.

    benchmarks/peers/.venv-huggingface/bin/python -m benchmarks.peers.huggingface_training \\
        $REGARD_DATA/tatoeba-en-fr/pairs.en-fr.tsv.gz FOLDER

FOLDER/model is what ``save_pretrained`` writes of the model, its generation settings and its
tokenizer. FOLDER/data has the split of the corpus, for fine-tuning and evaluation with Regard.
After a few hundred steps, the translations are poor, but fine-tuning has a real start.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

# Otherwise the tokenizers of local folders are searched for in the hub, too.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers

from benchmarks.peers.huggingface_text import tokens_of, train_sentencepiece

TOKENS, SENTENCEPIECE_SENTENCES, MAX_LENGTH = 2500, 20_000, 40
# Per thousand sentences of the source language; all their translations are in one split.
_SPLITS = (("test", 10), ("eval", 20), ("train", 1000))
# Adam needs a warm-up with the post-normalization of Marian.
_WARM_UP, _RATE, _POOL = 150, 0.002, 20

Pair = tuple[str, str]


def main() -> None:
    """Write the corpus, the tokenizer and the model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a compressed file of pairs with a tabulator")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=160, help="pairs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    pairs = write_splits(arguments.corpus, arguments.folder / "data")
    folder = arguments.folder / "model"
    tokenizer = write_tokenizer(folder, pairs)
    model = create_model(tokenizer)
    train(model, tokenizer, pairs, arguments.steps, arguments.batch)
    model.save_pretrained(folder)


def write_splits(corpus: Path, folder: Path) -> list[Pair]:
    """Write a file of pairs for each split, and return the pairs for training."""
    splits: dict[str, list[Pair]] = {name: [] for name, _ in _SPLITS}
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        for line in lines:
            source, target = line.rstrip("\n").split("\t")[:2]
            number = zlib.crc32(source.encode()) % 1000
            splits[next(name for name, limit in _SPLITS if number < limit)].append((source, target))
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits.items():
        for column, side in enumerate(("en", "fr")):
            text = "".join(f"{pair[column]}\n" for pair in pairs)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
    return splits["train"]


def write_tokenizer(folder: Path, pairs: Sequence[Pair]) -> transformers.MarianTokenizer:
    """Train a SentencePiece model for each language, whose tokens have one list of ids."""
    files = folder / "tokenizer"
    files.mkdir(parents=True, exist_ok=True)
    sample = random.Random(0).sample(pairs, SENTENCEPIECE_SENTENCES)
    tokens: list[str] = []
    for column, side in enumerate(("source", "target")):
        path = files / f"{side}.spm"
        texts = [pair[column] for pair in sample]
        train_sentencepiece(path, texts, TOKENS, normalization="nmt_nfkc")
        tokens += tokens_of(path)
    ordinary = [token for token in dict.fromkeys(tokens) if token not in ("<unk>", "<s>", "</s>")]
    texts = ["</s>", "<unk>", *ordinary, "<pad>"]
    ids = {text: number for number, text in enumerate(texts)}
    (files / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    tokenizer = transformers.MarianTokenizer(
        *(str(files / name) for name in ("source.spm", "target.spm", "vocab.json")),
        source_lang="en",
        target_lang="fr",
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def create_model(tokenizer: transformers.MarianTokenizer) -> transformers.MarianMTModel:
    """Create a model with the settings of OPUS-MT, but smaller."""
    pad = tokenizer.pad_token_id
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 512))
    }
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0}
    model = transformers.MarianMTModel(
        transformers.MarianConfig(
            d_model=128,
            vocab_size=len(tokenizer.get_vocab()),
            activation_function="swish",
            scale_embedding=True,
            max_position_embeddings=512,
            init_std=128**-0.5,
            **sizes,
            **ids,
            forced_eos_token_id=0,
        )
    )
    model.generation_config = transformers.GenerationConfig(
        **ids,
        num_beams=4,
        max_length=512,
        length_penalty=1.0,
        forced_eos_token_id=0,
        bad_words_ids=[[pad]],
        renormalize_logits=True,
    )
    return model


def train(
    model: transformers.MarianMTModel,
    tokenizer: transformers.MarianTokenizer,
    pairs: Sequence[Pair],
    steps: int,
    size: int,
) -> None:
    """Train with Adam and batches of similar lengths."""
    optimizer = torch.optim.Adam(model.parameters(), lr=_RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / _WARM_UP, (_WARM_UP / (step + 1)) ** 0.5)
    )
    loss_of = torch.nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=0.1)
    batches, start, model = batches_of(pairs, size), time.perf_counter(), model.train()
    for step in range(1, steps + 1):
        sources, targets = next(batches)
        batch = tokenizer(
            sources,
            text_target=targets,
            padding=True,
            truncation=True,
            max_length=MAX_LENGTH,
            return_tensors="pt",
        )
        labels = batch["labels"].masked_fill(batch["labels"] == tokenizer.pad_token_id, -100)
        inputs = torch.roll(batch["labels"], 1, dims=1)
        inputs[:, 0] = model.config.decoder_start_token_id
        logits = model(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            decoder_input_ids=inputs,
        ).logits
        loss = loss_of(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0 or step == steps:
            seconds = time.perf_counter() - start
            print(f"step {step}: loss {loss.item():.3f}, {seconds:.0f} s", flush=True)
    model.eval()


def batches_of(pairs: Sequence[Pair], size: int) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the sources and targets of batches without an end, in a random order."""
    chance = random.Random(1)
    while True:
        pool = sorted(chance.sample(pairs, size * _POOL), key=lambda pair: len(pair[1]))
        for start in chance.sample(range(0, len(pool), size), _POOL):
            batch = pool[start : start + size]
            yield [source for source, _ in batch], [target for _, target in batch]


if __name__ == "__main__":
    main()
