"""How fast Regard trains, beside JoeyNMT and beside plain Keras, in one run.

    python -m benchmarks.peers.install                    # JoeyNMT's environment, once
    python -m benchmarks.training transformer
    python -m benchmarks.training recurrent
    python -m benchmarks.training transformer --only regard-bfloat16 joeynmt --rounds 3

Each system trains in a process of its own, one after another, on Multi30k cut into the same pieces,
with the sizes of benchmarks/transformer.yaml or benchmarks/recurrent.yaml, batches of as many
target pieces and as many threads. Prints a table: the target's pieces a second, padding not
counted, as the median over equal parts of the time after warming up; the operations that these
need (benchmarks/limit.py), and their share of what a product of matrices reaches in the same
process.
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

from benchmarks import limit, workload
from benchmarks.peers.install import FOLDER as PEERS
from benchmarks.tables import markdown, ratio

# JoeyNMT counts max(source, target) a row, padding included, Regard both sides: batches of 4096
# of either hold as many real target pieces, give or take a few in a hundred.
BATCH_TOKENS = 4096
PARTS = 9
_BFLOAT16, _XLA = {"precision": "mixed_bfloat16"}, {"jit_compile": True}


@dataclasses.dataclass(frozen=True)
class System:
    """What is measured: a program, and where it differs from the YAML.

    Attributes:
        program: ``regard``, ``joeynmt`` or ``keras``.
        training: keys of the section ``training``.
        input_feeding: whether a recurrent decoder gets its attentional state back.
    """

    program: str
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    input_feeding: bool = False

    @property
    def precision(self) -> str:
        """The format of the matrix products."""
        return "bfloat16" if "precision" in self.training else "float32"


SYSTEMS: dict[str, dict[str, System]] = {
    "transformer": {
        "joeynmt": System("joeynmt"),
        "keras": System("keras"),
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
    """Measures, and prints."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", choices=list(SYSTEMS))
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", help="some of them")
    parser.add_argument("--seconds", type=float, default=45.0, help="of training, each")
    parser.add_argument("--rounds", type=int, default=1, help="all in turn, so many times")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=workload.ROOT / "workspace" / "benchmarks")
    parser.add_argument("--peers", type=Path, default=PEERS, help="where JoeyNMT is installed")
    arguments = parser.parse_args()
    systems = SYSTEMS[arguments.model]
    chosen = arguments.only or list(systems)
    if unknown := sorted(set(chosen) - set(systems)):
        parser.error(f"there is no {unknown[0]}; there are {', '.join(systems)}")
    settings = prepare(arguments.model, arguments.folder)
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for name in chosen:
            print(f"{name} ...", file=sys.stderr, flush=True)
            found.setdefault(name, []).append(run(systems[name], settings, arguments))
    needed = work_a_piece(settings, arguments.folder)
    print(table(systems, found, needed))


def prepare(model: str, folder: Path) -> dict[str, Any]:
    """Reads the YAML, and cuts the corpus into pieces."""
    from pipeline.config import load

    config = load(workload.ROOT / "benchmarks" / f"{model}.yaml").model_dump(mode="json")
    config["training"]["batch_tokens"] = BATCH_TOKENS
    # A rate that is up at once shows within a minute that all of them learn.
    config["training"]["schedule"] = {"type": "inverse_sqrt", "warmup_steps": 20}
    workload.prepare(Path(config["data"]["root"]), folder, config["tokenizer"])
    return config


def run(system: System, config: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """One system in a process of its own; what it answered."""
    model = dict(config["model"])
    if model["decoder"]["type"] == "luong":
        model["decoder"] = {**model["decoder"], "input_feeding": system.input_feeding}
    training = {**config["training"], "precision": "float32", **system.training}
    request = {
        "program": system.program,
        "folder": str(arguments.folder.resolve()),
        "model": model,
        "training": training,
        "batch_size": BATCH_TOKENS,
        "seconds": arguments.seconds,
        "threads": arguments.threads,
    }
    command = [sys.executable, "-m", "benchmarks.training_process"]
    if system.program == "joeynmt":
        python = arguments.peers / "bin" / "python"
        if not python.exists():
            sys.exit(f"{python} is not there: python -m benchmarks.peers.install")
        command = [str(python), "-m", "benchmarks.peers.joeynmt_training"]
    return workload.asked_of(command, request, arguments.threads)


def work_a_piece(config: Mapping[str, Any], folder: Path) -> dict[bool, float]:
    """The operations of a training step for a target piece, without input feeding and with it."""
    source, target = workload.lengths(folder, config["training"]["max_length"])
    vocabulary = len(workload.vocabulary(folder))
    found = {}
    for feeding in (False, True):
        decoder = {**config["model"]["decoder"], "input_feeding": feeding}
        model = {**config["model"], "decoder": decoder}
        found[feeding] = limit.TRAINING * limit.work(model, vocabulary, source, target)
    return {feeding: work / float(target.sum()) for feeding, work in found.items()}


def speed(batches: Sequence[tuple[float, int]], parts: int = PARTS) -> float:
    """Pieces a second: the median over as many parts, of equally many batches each."""
    size = max(1, len(batches) // parts)
    rates = []
    for first in range(0, len(batches) - size + 1, size):
        part = batches[first : first + size]
        rates.append(sum(pieces for _, pieces in part) / sum(seconds for seconds, _ in part))
    return statistics.median(rates)


def table(
    systems: Mapping[str, System],
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    needed: Mapping[bool, float],
) -> str:
    """Markdown: a line a system, and what shows that all did the same work."""
    speeds = {name: [speed(run["batches"]) for run in runs] for name, runs in found.items()}
    peers = [name for name in found if systems[name].program != "regard"]
    head = ["system", "pieces/s", *(f"× {peer}" for peer in peers), "GFLOP/s"]
    head += ["of float32", "of bfloat16", "pieces a batch", "weights", "accuracy"]
    rows = []
    for name, runs in found.items():
        work = needed[systems[name].input_feeding]
        cells = [name, f"{statistics.median(speeds[name]):,.0f}"]
        cells += [f"{ratio(speeds[name], speeds[peer]):.2f}" for peer in peers]
        cells.append(f"{work * statistics.median(speeds[name]) / 1e9:.0f}")
        for key in _FORMATS:
            rates = [run["rates"].get(key) for run in runs]
            cells.append(f"{work * ratio(speeds[name], rates):.0%}" if all(rates) else "")
        last = runs[-1]
        cells += [f"{last['pieces_a_batch']:,.0f}", f"{last['parameters'] / 1e6:.2f} M"]
        cells.append(f"{last['accuracy']:.1%} of {last['known_of'] / 1e3:,.0f} k")
        rows.append(cells)
    return f"{markdown(head, rows)}\n\n{_below(found, needed)}"


_FORMATS = ("float32", "bfloat16")


def _below(found: Mapping[str, Sequence[Mapping[str, Any]]], needed: Mapping[bool, float]) -> str:
    """The products' rates, and the work of a piece."""
    rates = [run["rates"] for runs in found.values() for run in runs]
    told = [
        f"{name} {statistics.median(each) / 1e9:.0f}"
        for name in _FORMATS
        if (each := [rate[name] for rate in rates if name in rate])
    ]
    work = " or ".join(f"{x / 1e6:.1f}" for x in dict.fromkeys(needed.values()))
    return f"Products of matrices: {', '.join(told)} GFLOP/s. A target piece: {work} MFLOP."


if __name__ == "__main__":
    main()
