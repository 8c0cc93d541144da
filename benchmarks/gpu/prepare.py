"""Prepare the folder: tokenize the corpora, and compute TensorFlow's numbers on the CPU."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import keras
import numpy as np
import sentencepiece

from benchmarks import workload
from benchmarks.gpu import folder as folders
from benchmarks.gpu import numerics, searching
from benchmarks.gpu.sizes import Size
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.components.trainer.backends import current_backend
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.training_loop import set_seed
from regard.core.provenance import code_version, stack_versions
from regard.core.ragged import Ragged
from regard.models.settings.training import TrainingConfig
from regard.pipeline.config.config import Config
from regard.pipeline.config.load import load

Texts = dict[str, dict[str, list[str]]]  # the lines of each side of each split

_CONFIGURATION = workload.ROOT / "configs" / "multi30k-en-de-rotary.yaml"
_TATOEBA_CONFIGURATION = workload.ROOT / "configs" / "tatoeba-en-fr.yaml"
# The settings of the model that is trained a little, to be searched on both backends.
SEARCH_TRAINING = {
    "batch_tokens": 2048,
    "max_length": 40,
    "learning_rate": 0.001,
    "schedule": {"type": "inverse_sqrt", "warmup_steps": 100},
    "seed": 17,
}


def prepare(folder: Path, data: Path, size: Size) -> None:
    """Write everything that a run reads, and print the bytes of each file.

    Args:
        folder: the folder to write.
        data: the value of ``REGARD_DATA``, with Multi30k and Tatoeba.
        size: the size of the benchmark.
    """
    folder.mkdir(parents=True, exist_ok=True)
    configuration = load(_CONFIGURATION)
    texts = read_multi30k(data / "multi30k", size.rows)
    multi30k, tokenizer = tokenize(texts, configuration, size)
    folders.write_corpus(folder / f"{folders.MULTI30K}.npz", multi30k)
    (folder / folders.TOKENIZER).write_bytes(tokenizer)
    references = "".join(f"{line}\n" for line in texts["test"]["target"])
    (folder / folders.REFERENCES).write_text(references, encoding="utf-8")
    texts = read_tatoeba(data / "tatoeba-en-fr" / "pairs.en-fr.tsv.gz", size.rows)
    tatoeba, other_tokenizer = tokenize(texts, load(_TATOEBA_CONFIGURATION), size)
    folders.write_corpus(folder / f"{folders.TATOEBA}.npz", tatoeba)
    search: Any = configuration.search
    settings = folders.Settings(
        size=size.name,
        vocabulary_sizes={
            folders.MULTI30K: vocabulary_size(tokenizer),
            folders.TATOEBA: vocabulary_size(other_tokenizer),
        },
        model={**configuration.model.model_dump(mode="json"), **size.translation_model},
        training={**configuration.training.model_dump(mode="json"), **size.translation},
        search=search.model_dump(mode="json"),
        commit=code_version().get("commit", ""),
        versions=stack_versions(),
    )
    settings.write(folder)
    arrays = {**numerics.reference(size.backend_parts), **search_reference(folder, settings)}
    with open(folder / folders.REFERENCE, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    for path in sorted(folder.iterdir()):
        if path.is_file():
            print(f"{path.stat().st_size:>12,}  {path.name}")


def read_multi30k(folder: Path, rows: int) -> Texts:
    """Return the lines of Multi30k, English and German."""
    texts = {}
    for split in folders.SPLITS:
        source, target = workload.references(folder, split)
        texts[split] = {"source": source[:rows], "target": target[:rows]}
    return texts


def read_tatoeba(path: Path, rows: int) -> Texts:
    """Return the pairs of Tatoeba, divided by a checksum of the English sentence.

    1% are for evaluation and 2% for the test, as in the configuration; they are not the same rows.
    """
    texts: Texts = {split: {side: [] for side in folders.SIDES} for split in folders.SPLITS}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            source, target = line.rstrip("\n").split("\t")[:2]
            split = split_of(source)
            if len(texts[split]["source"]) < rows:
                texts[split]["source"].append(source)
                texts[split]["target"].append(target)
    return texts


def split_of(source: str) -> str:
    """Return the split of an English sentence, so that all its translations share one."""
    percent = zlib.crc32(source.encode("utf-8")) % 100
    if percent == 0:
        return "eval"
    return "test" if percent <= 2 else "train"


def tokenize(
    texts: Texts, configuration: Config, size: Size
) -> tuple[dict[str, dict[str, list[list[int]]]], bytes]:
    """Train the tokenizer of a configuration, which both sides share, and tokenize all splits.

    Returns:
        The ids of each side of each split, and the serialized SentencePiece model.
    """
    section = configuration.tokenizer
    vocab_size = min(section.vocab_size, size.vocabulary)
    section = section.model_copy(update={"vocab_size": vocab_size})
    lines = [line.encode("utf-8") for side in folders.SIDES for line in texts["train"][side]]
    tokenizer = train_tokenizer(lines, section).proto
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    ids = {
        split: {side: processor.encode(lines) for side, lines in sides.items()}
        for split, sides in texts.items()
    }
    return ids, tokenizer


def vocabulary_size(tokenizer: bytes) -> int:
    """Return the vocabulary size of a serialized SentencePiece model."""
    return int(sentencepiece.SentencePieceProcessor(model_proto=tokenizer).vocab_size())


def search_reference(folder: Path, settings: folders.Settings) -> dict[str, np.ndarray]:
    """Train a small model on Multi30k, and decode with every search.

    Returns:
        The weights as ``search/weight/<i>``, and the padded outputs as ``search/<name>``.
    """
    size = settings.sizes
    training = TrainingConfig.model_validate(SEARCH_TRAINING)
    set_seed(training)
    vocabulary = settings.vocabulary_sizes[folders.MULTI30K]
    model = searching.build_model(size.search_model, training, vocabulary)
    compile_model(model, training)
    path = folder / "train.arrow"
    batches = folders.make_batches(
        path,
        folders.read_split(folder, folders.MULTI30K, "train"),
        batch_tokens=int(training.batch_tokens),
        max_length=training.max_length,
        seed=training.seed,
        growth=COARSE_GROWTH,
    )
    numbers = np.arange(min(size.search_steps, batches.size))
    data: Any = current_backend().data(batches)
    model.fit(data.epoch(0, numbers=numbers), shuffle=False, verbose=0)
    weights = model.get_weights()
    arrays = {f"search/weight/{number}": weight for number, weight in enumerate(weights)}
    sources = searching.read_sources(folder, size.search_rows)
    for name, search in searching.SEARCHES.items():
        outputs, _ = searching.decode(
            model, search, searching.LIMITS, batches, sources, size.search_batch
        )
        arrays[f"search/{name}"] = _padded(outputs)
    path.unlink()
    keras.utils.clear_session()
    return arrays


def _padded(rows: list[list[int]]) -> np.ndarray:
    """Return rows of ids, padded with 0."""
    lengths = np.asarray([len(row) for row in rows])
    values = np.asarray([token for row in rows for token in row], np.uint16)
    return Ragged.from_lengths(values, lengths).to_dense(padding=0)
