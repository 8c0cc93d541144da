"""The work that Regard and its peers are measured at: Multi30k, in the same pieces for all."""

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
# In the terms of the others: a line a row, with spaces between the pieces.
PIECES, VOCABULARY = "{split}.{language}", "pieces.txt"
ROWS, LENGTHS = "train.tfrecord.gz", "lengths.npz"
# After so many target pieces it is told what a training has learned.
FIRST = 40_000
FEATURES = ("source_ids", "target_ids", "target_lengths")


def prepare(multi30k: Path, folder: Path, settings: dict[str, Any]) -> None:
    """Trains the tokenizer that both languages share, and writes the corpus as each reads it.

    Args:
        multi30k: the folder with ``train.en.gz`` and the others.
        folder: where to; nothing is done if it is complete.
        settings: the YAML's section ``tokenizer``.
    """
    done = folder / "settings.json"
    if done.is_file() and json.loads(done.read_text(encoding="utf-8")) == settings:
        return
    import sentencepiece

    from components.tokenizer_trainer.sentencepiece_model import train

    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        split: {
            side: _lines(multi30k / f"{name}.{language}.gz") for side, language in SIDES.items()
        }
        for split, name in SPLITS.items()
    }
    both = [line.encode() for side in SIDES for line in texts["train"][side]]
    trained = train(both, settings)
    (folder / TOKENIZER).write_bytes(trained.proto)
    _write(folder / VOCABULARY, [piece for piece, _ in trained.pieces])
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=trained.proto)
    for split, sides in texts.items():
        for side, language in SIDES.items():
            cut = tokenizer.encode(sides[side], out_type=str)
            path = folder / PIECES.format(split=split, language=language)
            _write(path, [" ".join(pieces) for pieces in cut])
    ids = {side: tokenizer.encode(texts["train"][side]) for side in SIDES}
    _write_rows(folder / ROWS, ids)
    lengths = {side: np.asarray([len(row) + 1 for row in ids[side]]) for side in SIDES}
    np.savez(folder / LENGTHS, **lengths)
    done.write_text(json.dumps(settings), encoding="utf-8")


def lengths(folder: Path, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of the sources and the targets that are trained on, end of sentence counted."""
    with np.load(folder / LENGTHS) as found:
        source, target = found["source"], found["target"]
    used = np.maximum(source, target) <= longest
    return source[used], target[used]


def vocabulary(folder: Path) -> list[str]:
    """The pieces, in the order of their ids."""
    return (folder / VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]


def references(multi30k: Path, split: str = "test") -> tuple[list[str], list[str]]:
    """The sources and the targets of a split as plain text."""
    name = SPLITS[split]
    return _lines(multi30k / f"{name}.en.gz"), _lines(multi30k / f"{name}.de.gz")


def asked_of(command: Sequence[str], request: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """What a process answers with the last line that it prints.

    Args:
        command: starts it.
        request: is given to it as JSON, on standard input.
        threads: how many TensorFlow, PyTorch and CTranslate2 are to take.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    environment = {
        **os.environ,
        **dict.fromkeys((*names, "TF_NUM_INTEROP_THREADS"), str(threads)),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        list(command),
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env=environment,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _write_rows(path: Path, ids: dict[str, list[list[int]]]) -> None:
    """Transformed examples, as Preprocess leaves them."""
    import tensorflow as tf

    def feature(values: list[int]) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for source, target in zip(ids["source"], ids["target"], strict=True):
            columns = zip(FEATURES, (source, target, [len(target)]), strict=True)
            named = {name: feature(values) for name, values in columns}
            example = tf.train.Example(features=tf.train.Features(feature=named))
            writer.write(example.SerializeToString())


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.strip() for line in file]


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
