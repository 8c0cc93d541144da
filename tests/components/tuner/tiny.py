"""Data and settings of trials that take seconds, and a search in a process of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io

from components.tokenizer_trainer import sentencepiece_model
from components.trainer.training import Source
from components.tuner.search import Search
from components.tuner.space import Dimension, Space
from pipeline.config.loading import checked
from tests.components.trainer.records import FEATURES, write

CONFIG = {
    "name": "tiny",
    "data": {"train": "a.tsv"},
    "tokenizer": {"type": "char", "vocab_size": 20, "vocab_limit": "soft"},
    "model": {
        "embedding": 8,
        "dropout": 0.1,
        "encoder": {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8},
        "decoder": {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8},
    },
    "training": {
        "batch_tokens": 200,
        "max_length": 20,
        "max_epochs": 3,
        "early_stop": None,
        "deterministic": True,
        "checkpoint_seconds": 1,
    },
}
RATES = Space((Dimension("training.learning_rate", 1e-3, 1e-1, log=True),))


def make_source(folder: Path) -> Source:
    """Transformed rows whose targets are their sources, as Preprocess leaves them."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    rows = [random.integers(4, 12, 2 + n % 8).tolist() for n in range(160)]
    files = [
        write(folder / f"{name}.gz", [(row, row) for row in part])
        for name, part in (("train", rows[:120]), ("eval", rows[120:]))
    ]
    graph = folder / "graph"
    spec = {name: tf.io.VarLenFeature(tf.int64) for name in FEATURES}
    described = dataset_metadata.DatasetMetadata.from_feature_spec(spec)
    metadata_io.write_metadata(described, str(graph / "transformed_metadata"))
    (graph / "tokenizer").mkdir(parents=True)
    tokenizer = config()["tokenizer"]
    model = sentencepiece_model.train([b"abcdefgh"] * 8, tokenizer)
    for side in ("source", "target"):
        (graph / "tokenizer" / f"{side}.model").write_bytes(model.proto)
    return Source([files[0]], [files[1]], str(graph))


def config() -> dict[str, Any]:
    """What ``run_fn`` takes."""
    read, wrong = checked(CONFIG)
    assert read is not None, wrong
    whole = read.model_dump(mode="json")
    names = ("task", "tokenizer", "model", "training", "search")
    return {**{name: whole[name] for name in names}, "start": {}}


def settings(**changes: Any) -> dict[str, Any]:
    """What a search takes as ``tune``."""
    plain = {
        "algorithm": "random",
        "objective": "loss",
        "direction": "min",
        "seed": 3,
        "trials": 3,
        "epochs": 1,
        "minutes": None,
        "factor": 3,
        "iterations": 1,
        "parallel": 1,
        "threads": 1,
        "failures": 3,
    }
    return {**plain, **changes}


def search(folder: Path, source: Source, tune: dict[str, Any], space: Space = RATES) -> Search:
    """A search in a folder; KerasTuner's own files are not kept there."""
    scratch = folder / f"scratch{len(list(folder.glob('scratch*')))}"
    return Search(config(), source, tune, space, folder / "search", str(scratch))


if __name__ == "__main__":
    folder, files, changes = sys.argv[1:]
    search(Path(folder), Source(**json.loads(files)), settings(**json.loads(changes))).search()
