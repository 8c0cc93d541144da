"""Data and settings of trials that take seconds, and a search in its own process."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.settings.trainer import RunInputs, TrainingData
from regard.components.settings.tune import Range, TuneConfig
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.components.tuner.search import TrialSearch, TunerSettings
from regard.components.tuner.space import Dimension, SearchSpace
from regard.pipeline.config.load import validate_values
from tests.components.trainer.pairs import write_pairs

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
        "early_stopping": None,
        "deterministic": True,
        "checkpoint_seconds": 1,
    },
}
RATES = SearchSpace((Dimension("training.learning_rate", 1e-3, 1e-1, log=True),))


def make_source(folder: Path) -> TrainingData:
    """Transformed rows whose targets are their sources, as Preprocess leaves them."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    rows = [random.integers(4, 12, 2 + n % 8).tolist() for n in range(160)]
    files = [
        write_pairs(folder / f"{name}.arrow", [(row, row) for row in part])
        for name, part in (("train", rows[:120]), ("eval", rows[120:]))
    ]
    graph = folder / "graph"
    (graph / "tokenizer").mkdir(parents=True)
    tokenizer = TokenizerConfig.model_validate(CONFIG["tokenizer"])
    model = train_tokenizer([b"abcdefgh"] * 8, tokenizer)
    for side in ("source", "target"):
        (graph / "tokenizer" / f"{side}.model").write_bytes(model.proto)
    return TrainingData([files[0]], [files[1]], str(graph))


def config() -> dict[str, Any]:
    """The settings of the Trainer as JSON values."""
    read, wrong = validate_values(CONFIG)
    assert read is not None, wrong
    whole = read.model_dump(mode="json")
    return {name: whole[name] for name in ("task", "model", "training", "search")}


def tune(**changes: Any) -> TuneConfig:
    """The section ``tune`` of a search."""
    fields: dict[str, Any] = {
        "search_space": {"x": Range()},
        "algorithm": "random",
        "objective": "loss",
        "seed": 3,
        "max_trials": 3,
        "max_epochs": 1,
    }
    return TuneConfig(**{**fields, **changes})


def search(
    folder: Path, source: TrainingData, section: TuneConfig, space: SearchSpace = RATES
) -> TrialSearch:
    """A search whose trials are in ``folder``/search."""
    settings = TunerSettings(
        config=config(), run=RunInputs(), tune=section, space=space, folder=str(folder / "search")
    )
    return TrialSearch(TunerSettings.model_validate_json(settings.model_dump_json()), source)


if __name__ == "__main__":
    folder, files = sys.argv[1:]
    search(Path(folder), TrainingData(**json.loads(files)), tune()).search()
