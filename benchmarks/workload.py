"""The workload of the comparisons: Multi30k, tokenized once for all systems."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SIDES = {"source": "en", "target": "de"}
SPLITS = {"train": "train", "eval": "val", "test": "test_2016_flickr"}
TOKENIZER = "tokenizer.model"
# For the other systems: one row per line, with spaces between the tokens.
TOKENS, VOCABULARY = "{split}.{language}", "vocabulary.txt"
ROWS, LENGTHS = "train.arrow", "lengths.npz"
# The accuracy of a training is measured on this number of target tokens.
ACCURACY_TOKENS = 40_000
FEATURES = ("source_ids", "target_ids", "target_lengths", "training_lengths")


def prepare(multi30k: Path, folder: Path, settings: dict[str, Any]) -> None:
    """Train a shared tokenizer, and write the corpus in the format of each system.

    Args:
        multi30k: the folder with ``train.en.gz`` and the other files.
        folder: the folder for the outputs; nothing is done if it is complete.
        settings: the section ``tokenizer``.
    """
    marker = folder / "settings.json"
    is_complete = marker.is_file() and (folder / ROWS).is_file()
    if is_complete and json.loads(marker.read_text(encoding="utf-8")) == settings:
        return
    import sentencepiece

    from regard.components.settings.tokenizer import TokenizerConfig
    from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer

    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        split: {
            side: _lines(multi30k / f"{name}.{language}.gz") for side, language in SIDES.items()
        }
        for split, name in SPLITS.items()
    }
    both = [line.encode() for side in SIDES for line in texts["train"][side]]
    model = train_tokenizer(both, TokenizerConfig.model_validate(settings))
    (folder / TOKENIZER).write_bytes(model.proto)
    _write(folder / VOCABULARY, [token for token, _ in model.tokens])
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=model.proto)
    for split, sides in texts.items():
        for side, language in SIDES.items():
            rows = tokenizer.encode(sides[side], out_type=str)
            path = folder / TOKENS.format(split=split, language=language)
            _write(path, [" ".join(tokens) for tokens in rows])
    ids = {side: tokenizer.encode(texts["train"][side]) for side in SIDES}
    _write_rows(folder / ROWS, ids)
    lengths = {side: np.asarray([len(row) + 1 for row in ids[side]]) for side in SIDES}
    np.savez(folder / LENGTHS, **lengths)
    marker.write_text(json.dumps(settings), encoding="utf-8")


def lengths(folder: Path, max_length: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of tokens of the training sources and targets, including EOS: ``[rows]``."""
    with np.load(folder / LENGTHS) as arrays:
        source, target = arrays["source"], arrays["target"]
    used = np.maximum(source, target) <= max_length
    return source[used], target[used]


def vocabulary(folder: Path) -> list[str]:
    """The tokens, in the order of their ids."""
    return (folder / VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]


def references(multi30k: Path, split: str = "test") -> tuple[list[str], list[str]]:
    """The sources and the targets of a split as text."""
    name = SPLITS[split]
    return _lines(multi30k / f"{name}.en.gz"), _lines(multi30k / f"{name}.de.gz")


def run_process(command: Sequence[str], request: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """Run a process, and parse the last line of its output as JSON.

    Args:
        command: the command line.
        request: passed as JSON on standard input.
        threads: the number of threads for TensorFlow, PyTorch and CTranslate2.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    environment = {
        **os.environ,
        **dict.fromkeys((*names, "TF_NUM_INTEROP_THREADS"), str(threads)),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONPATH": str(ROOT),
    }
    process = subprocess.run(
        list(command),
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env=environment,
    )
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{process.stderr[-4000:]}")
    return dict(json.loads(process.stdout.splitlines()[-1]))


def _write_rows(path: Path, ids: dict[str, list[list[int]]]) -> None:
    """Write transformed rows as Preprocess does."""
    import pyarrow as pa

    from regard.components.common.row_files import write_rows

    pairs = list(zip(ids["source"], ids["target"], strict=True))
    lengths = [[max(map(len, pair)) + 1 if all(pair) else 0] for pair in pairs]
    columns = (ids["source"], ids["target"], [[len(target)] for _, target in pairs], lengths)
    schema = pa.schema({name: pa.large_list(pa.int64()) for name in FEATURES})
    table = pa.table(dict(zip(FEATURES, columns, strict=True)), schema)
    write_rows(path, schema, table.to_batches(max_chunksize=1024))


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.strip() for line in file]


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
