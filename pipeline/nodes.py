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
    "Reporter",
)


def nodes_of(text: bool) -> tuple[str, ...]:
    """The nodes of a pipeline whose task reads or writes text, or does not."""
    return NODES if text else tuple(name for name in NODES if name != "TokenizerTrainer")


TUNER = "Tuner"


def nodes_of_search(text: bool) -> tuple[str, ...]:
    """The nodes of `regard tune`, which takes the Tuner in place of the Trainer and the rest."""
    nodes = nodes_of(text)
    return (*nodes[: nodes.index("Trainer")], TUNER)
