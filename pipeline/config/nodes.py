"""The names of the pipeline's nodes, in the order in which they run."""

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
    "Reporter",
)
TUNER = "Tuner"


def nodes_of(has_text: bool) -> tuple[str, ...]:
    """Return the nodes of a pipeline, without the tokenizer if its task has no text features."""
    return NODES if has_text else tuple(name for name in NODES if name != "TokenizerTrainer")


def nodes_of_search(has_text: bool) -> tuple[str, ...]:
    """Return the nodes of `regard tune`: those before the Trainer, and the Tuner."""
    nodes = nodes_of(has_text)
    return (*nodes[: nodes.index("Trainer")], TUNER)
