"""Runs of a pipeline on a cluster, and their artifacts."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tensorflow_metadata.proto.v0 import statistics_pb2

from benchmarks.cluster.engines import ROOT
from regard.components.common.prediction_table import CANDIDATE
from regard.core import events

# What the Beam jobs write: node and name of the artifact.
ARTIFACTS = (
    ("CorpusGen", "examples"),
    ("CorpusGen", "findings"),
    ("StatisticsGen", "statistics"),
    ("SchemaGen", "schema"),
    ("ExampleValidator", "findings"),
    ("TokenizerTrainer", "tokenizer"),
    ("Preprocess", "transformed_examples"),
    ("Predictor", "predictions"),
)
# Parts of the paths of temporary files of our nodes, of Beam and of atomic writes.
_TEMPORARY_PARTS = (".writing-", ".parts-", "beam-temp-", ".tmp", ".temp", ".inprogress")


_CONFIG = """
name: cluster
task: translation
data:
  eval: {source: eval.en, target: eval.de}
  test: {source: test.en, target: test.de}
tokenizer: {type: bpe, vocab_size: 4000, shared: true}
model:
  embedding: 64
  tie_embeddings: all
  encoder: {type: transformer, layers: 1, heads: 2, feed_forward: 128, norm: pre}
  decoder: {type: transformer, layers: 1, heads: 2, feed_forward: 128, norm: pre}
training: {batch_tokens: 4096, max_length: 60, max_epochs: null, early_stopping: null}
search: {type: beam, beam_size: 2}
evaluation:
  metrics: [bleu]
  baselines: []
  checks:
    empty: {action: warn}
    copies: {action: warn}
    repetitions: {action: warn}
    length_ratio: {action: warn}
    script: {action: warn}
"""


@dataclass
class PipelineRun:
    """A run of ``regard`` in a workspace of its own, below a folder that exists.

    Args:
        folder: the folder of the configuration and the workspace.
        config: the configuration.
        beam: its section ``beam``.
    """

    folder: Path
    config: Mapping[str, Any]
    beam: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self._pipeline = self.home / "pipelines" / str(self.config["name"])

    def start(self, *arguments: str) -> None:
        """Start ``regard run``; its output goes to ``output.txt``."""
        self.home.mkdir(parents=True, exist_ok=True)
        path = self.folder / "pipeline.yaml"
        path.write_text(yaml.safe_dump({**self.config, "beam": dict(self.beam)}))
        command = [sys.executable, "-m", "regard.pipeline.cli", "run", str(path), *arguments]
        environment = {**os.environ, "REGARD_HOME": str(self.home), "PYTHONPATH": str(ROOT)}
        with (self.folder / "output.txt").open("w") as output:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def wait(self, seconds: float) -> int:
        """Return the exit status of the started run."""
        return self.process.wait(seconds)

    @property
    def output(self) -> str:
        """What the run printed."""
        return (self.folder / "output.txt").read_text(errors="replace")

    def state(self, node: str) -> str | None:
        """The newest state of a node in the newest run."""
        return self._node_events().get(node, {}).get("state")

    def seconds(self) -> dict[str, float]:
        """Wall seconds of each node that ran."""
        return {
            node: round(event["seconds"], 1)
            for node, event in self._node_events().items()
            if "seconds" in event
        }

    def digests(self) -> dict[str, str]:
        """SHA-256 of every file of the artifacts of the Beam jobs.

        Of the statistics, without the lists of the most frequent texts: TFDV approximates them from
        16,384 different texts on, and the approximation depends on the order of the workers.
        Without the Predictor's file of speeds, and without its predictions, whose scores differ by
        rounding.
        """
        return {
            f"{node}/{name}/{path.relative_to(folder)}": _digest(path)
            for node, name in ARTIFACTS
            for folder in sorted((self._pipeline / "artifacts" / node / name).glob("*"))
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in ("predictions.json", CANDIDATE)
        }

    def predictions(self) -> Path:
        """The table of predictions of the only run."""
        (path,) = (self._pipeline / "artifacts" / "Predictor").rglob(CANDIDATE)
        return path

    def temporary_files(self, node: str = "") -> list[Path]:
        """Files and folders of unfinished work in the artifacts, of one node or of all."""
        return [
            path
            for path in (self._pipeline / "artifacts" / node).rglob("*")
            if any(part in str(path) for part in _TEMPORARY_PARTS)
        ]

    def _node_events(self) -> dict[str, dict[str, Any]]:
        runs = sorted((self._pipeline / "runs").glob("*/events.jsonl"))
        newest = events.read(runs[-1]) if runs else ()
        return {event["node"]: dict(event) for event, _ in newest if event["kind"] == "node"}


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.name == "FeatureStats.pb":
        statistics = statistics_pb2.DatasetFeatureStatisticsList.FromString(content)
        for dataset in statistics.datasets:
            for feature in dataset.features:
                feature.string_stats.ClearField("rank_histogram")
                feature.string_stats.ClearField("top_values")
        content = statistics.SerializeToString(deterministic=True)
    return hashlib.sha256(content).hexdigest()


def configuration(corpus: Path, steps: int) -> dict[str, Any]:
    """The configuration of a small Transformer for a corpus of ``benchmarks.corpora``."""
    sides = {
        side: sorted(file.name for file in corpus.glob(f"train-*.{end}"))
        for side, end in (("source", "en"), ("target", "de"))
    }
    config: dict[str, Any] = yaml.safe_load(_CONFIG)
    config["data"] |= {"root": str(corpus), "train": sides}
    config["training"]["max_steps"] = steps
    return config
