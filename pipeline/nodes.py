"""The nodes of the graph in the order in which they run; a node's id is its component's name."""

from __future__ import annotations

NODES: tuple[str, ...] = (
    "CorpusGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "TokenizerTrainer",
    "Preprocess",
    "Trainer",
    "Predictor",
    "Evaluator",
    "ServingCheck",
    "Pusher",
)
