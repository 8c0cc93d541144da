"""Compare the training speed of Regard with JoeyNMT, Sockeye, Keras and KerasHub in one run.

    python -m benchmarks.peers.install                    # the environment of the peers, once
    python -m benchmarks.training transformer
    python -m benchmarks.training recurrent
    python -m benchmarks.training transformer --only regard-bfloat16 joeynmt --rounds 3

The systems train one after another, each in a process of its own, on Multi30k with the same
tokens, the model sizes of benchmarks/transformer.yaml or benchmarks/recurrent.yaml, and equal
numbers of target tokens per batch and of threads. Prints a table: target tokens per second without
padding, as the median over equal parts of the time after a warm-up; the operations for these tokens
(benchmarks/hardware_limits.py); and their share of the rate of matrix products in the same process.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import hardware_limits, workload
from benchmarks.markdown_table import format_table, median_ratio
from benchmarks.peers.install import FOLDER as PEERS
from benchmarks.peers.install import KERAS_HUB

# JoeyNMT counts max(source, target) per row including padding, Regard both sides: batches of 4096
# hold the same number of real target tokens up to a few percent.
BATCH_TOKENS = 4096
PARTS = 9
_BFLOAT16, _XLA = {"precision": "mixed_bfloat16"}, {"jit_compile": True}


@dataclasses.dataclass(frozen=True)
class System:
    """A system to measure: a program, and its changes to the configuration.

    Attributes:
        program: ``regard``, ``joeynmt``, ``sockeye``, ``keras`` or ``keras-hub``.
        training: settings of the section ``training``.
        input_feeding: whether a recurrent decoder uses input feeding.
    """

    program: str
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    input_feeding: bool = False

    @property
    def precision(self) -> str:
        """The number format of the matrix products."""
        return "bfloat16" if "precision" in self.training else "float32"


SYSTEMS: dict[str, dict[str, System]] = {
    "transformer": {
        "joeynmt": System("joeynmt"),
        "sockeye": System("sockeye"),
        "keras": System("keras"),
        "keras-hub": System("keras-hub"),
        "keras-hub-bfloat16": System("keras-hub", _BFLOAT16),
        "keras-xla": System("keras", _XLA),
        "keras-bfloat16": System("keras", _BFLOAT16),
        "regard": System("regard"),
        "regard-xla": System("regard", _XLA),
        "regard-bfloat16": System("regard", _BFLOAT16),
        "regard-bfloat16-xla": System("regard", {**_BFLOAT16, **_XLA}),
    },
    "recurrent": {
        "joeynmt-feeding": System("joeynmt", input_feeding=True),
        "joeynmt": System("joeynmt"),
        "keras": System("keras"),
        "regard-feeding": System("regard", input_feeding=True),
        "regard": System("regard"),
        "regard-feeding-bfloat16": System("regard", _BFLOAT16, input_feeding=True),
        "regard-bfloat16": System("regard", _BFLOAT16),
    },
}


def main() -> None:
    """Measure, and print the table."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", choices=list(SYSTEMS))
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", help="systems to measure")
    parser.add_argument("--seconds", type=float, default=45.0, help="training time of each")
    parser.add_argument(
        "--rounds", type=int, default=1, help="measure all systems in turn, this many times"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=workload.ROOT / "workspace" / "benchmarks")
    parser.add_argument("--peers", type=Path, default=PEERS, help="their virtual environment")
    arguments = parser.parse_args()
    systems = SYSTEMS[arguments.model]
    names = arguments.only or list(systems)
    if unknown := sorted(set(names) - set(systems)):
        parser.error(f"unknown system {unknown[0]}; choose from {', '.join(systems)}")
    settings = prepare(arguments.model, arguments.folder)
    results: dict[str, list[dict[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for name in names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            results.setdefault(name, []).append(run(systems[name], settings, arguments))
    operations = operations_per_token(settings, arguments.folder)
    print(format_results(systems, results, operations))


def prepare(model: str, folder: Path) -> dict[str, Any]:
    """Load the configuration, and tokenize the corpus."""
    from regard.pipeline.config import load

    config = load(workload.ROOT / "benchmarks" / f"{model}.yaml").model_dump(mode="json")
    config["training"]["batch_tokens"] = BATCH_TOKENS
    # A short warm-up, so that the accuracy shows within a minute that all systems learn.
    config["training"]["schedule"] = {"type": "inverse_sqrt", "warmup_steps": 20}
    workload.prepare(Path(config["data"]["root"]), folder, config["tokenizer"])
    return config


def run(system: System, config: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """Run one system in a process of its own, and return its result."""
    model = dict(config["model"])
    if model["decoder"]["type"] == "luong":
        model["decoder"] = {**model["decoder"], "input_feeding": system.input_feeding}
    training = {**config["training"], "precision": "float32", **system.training}
    request = {
        "program": system.program,
        "folder": str(arguments.folder.resolve()),
        "keras_hub": str(arguments.peers.resolve() / KERAS_HUB),
        "model": model,
        "training": training,
        "batch_size": BATCH_TOKENS,
        "seconds": arguments.seconds,
        "threads": arguments.threads,
    }
    command = [sys.executable, "-m", "benchmarks.training_process"]
    if system.program in ("joeynmt", "sockeye"):
        python = arguments.peers / "bin" / "python"
        if not python.exists():
            sys.exit(f"{python} does not exist: run python -m benchmarks.peers.install")
        command = [str(python), "-m", f"benchmarks.peers.{system.program}_training"]
    return workload.run_process(command, request, arguments.threads)


def operations_per_token(config: Mapping[str, Any], folder: Path) -> dict[bool, float]:
    """The operations of training per target token, without and with input feeding."""
    source, target = workload.lengths(folder, config["training"]["max_length"])
    vocabulary = len(workload.vocabulary(folder))
    operations = {}
    for feeding in (False, True):
        decoder = {**config["model"]["decoder"], "input_feeding": feeding}
        model = {**config["model"], "decoder": decoder}
        count = hardware_limits.count_operations(model, vocabulary, source, target)
        operations[feeding] = hardware_limits.TRAINING_FACTOR * count / float(target.sum())
    return operations


def tokens_per_second(batches: Sequence[tuple[float, int]], parts: int = PARTS) -> float:
    """The median over parts with equal numbers of batches."""
    size = max(1, len(batches) // parts)
    rates = []
    for first in range(0, len(batches) - size + 1, size):
        part = batches[first : first + size]
        rates.append(sum(tokens for _, tokens in part) / sum(seconds for seconds, _ in part))
    return statistics.median(rates)


def format_results(
    systems: Mapping[str, System],
    results: Mapping[str, Sequence[Mapping[str, Any]]],
    operations: Mapping[bool, float],
) -> str:
    """Format the results as a Markdown table with one row per system."""
    speeds = {
        name: [tokens_per_second(run["batches"]) for run in runs] for name, runs in results.items()
    }
    peers = [name for name in results if systems[name].program != "regard"]
    header = ["system", "tokens/s", *(f"× {peer}" for peer in peers), "GFLOP/s"]
    header += ["of float32", "of bfloat16", "tokens per batch", "parameters", "accuracy"]
    rows = []
    for name, runs in results.items():
        work = operations[systems[name].input_feeding]
        cells = [name, f"{statistics.median(speeds[name]):,.0f}"]
        cells += [f"{median_ratio(speeds[name], speeds[peer]):.2f}" for peer in peers]
        cells.append(f"{work * statistics.median(speeds[name]) / 1e9:.0f}")
        for key in _FORMATS:
            rates = [run["rates"].get(key) for run in runs]
            cells.append(f"{work * median_ratio(speeds[name], rates):.0%}" if all(rates) else "")
        last = runs[-1]
        cells += [f"{last['tokens_per_batch']:,.0f}", f"{last['parameters'] / 1e6:.2f} M"]
        cells.append(f"{last['accuracy']:.1%} of {last['accuracy_tokens'] / 1e3:,.0f} k")
        rows.append(cells)
    return f"{format_table(header, rows)}\n\n{_footnote(results, operations)}"


_FORMATS = ("float32", "bfloat16")


def _footnote(
    results: Mapping[str, Sequence[Mapping[str, Any]]], operations: Mapping[bool, float]
) -> str:
    """The rates of matrix products, and the operations per token."""
    rates = [run["rates"] for runs in results.values() for run in runs]
    products = [
        f"{name} {statistics.median(each) / 1e9:.0f}"
        for name in _FORMATS
        if (each := [rate[name] for rate in rates if name in rate])
    ]
    work = " or ".join(f"{x / 1e6:.1f}" for x in dict.fromkeys(operations.values()))
    return f"Matrix products: {', '.join(products)} GFLOP/s. A target token: {work} MFLOP."


if __name__ == "__main__":
    main()
