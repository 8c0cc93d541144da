"""Measure the ingestion of 10,000 to 1,000,000 pairs, from CorpusGen to Preprocess.

    python benchmarks/ingest.py                         # as in benchmarks/ingest.md
    python benchmarks/ingest.py --pairs 10000 --modes in_process
    python -m benchmarks.peers.install                  # once
    python benchmarks/ingest.py --pairs 1000000 --modes in_process --sockeye --rounds 3

Runs `regard run --to Preprocess` on Multi30k repeated with noise (`benchmarks/corpora.py`), each
size and mode in a process and a workspace of its own, and samples all processes of the run ten
times per second. Prints a line of JSON for each: wall seconds, CPU seconds and peak memory of every
node. On a shared machine, the CPU time is the relevant one.

The baseline is SentencePiece's C++ library, which encodes the same pairs with the run's tokenizer
in one process and one thread, a list of texts per call. The share is the throughput of CorpusGen
and Preprocess together, by wall time, relative to such processes on all cores.

With ``--sockeye``, SentencePiece tokenizes the same files with the same tokenizers, one process for
each side, and Sockeye's ``prepare_data`` writes training shards, with a process for each core.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.corpora import SIDES, write  # noqa: E402
from benchmarks.peers.install import FOLDER as PEERS  # noqa: E402
from benchmarks.workload import run_process  # noqa: E402
from regard.pipeline.workspace import Workspace  # noqa: E402

_MEASURED_NODES = ("CorpusGen", "Preprocess")
_BASELINE_PAIRS = 100_000  # more pairs have the same rate
_BASELINE_REPEATS = 3
NODES = (
    "CorpusGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "TokenizerTrainer",
    "Preprocess",
)
MODES = ("in_process", "processes")
FILES = 4  # per side
_SAMPLE_INTERVAL = 0.1  # seconds
_CONFIG = """
name: ingest
task: translation
data:
  root: {root}
  train: {{source: [{source}], target: [{target}]}}
  eval: {{source: eval.en, target: eval.de}}
  test: {{source: test.en, target: test.de}}
tokenizer: {{type: bpe, vocab_size: 8000}}
beam: {{runner: {mode}}}
"""


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument(
        "--folder", type=Path, help="folder for corpora and runs; default: a temporary one"
    )
    parser.add_argument("--sockeye", action="store_true", help="also measure Sockeye")
    parser.add_argument("--rounds", type=int, default=1, help="repeat every measurement")
    arguments = parser.parse_args()
    multi30k = Workspace.from_environment().data_root() / "multi30k"

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for pairs in arguments.pairs:
            corpus = Path(folder, f"corpus-{pairs}")
            write(multi30k, corpus, pairs, FILES)
            for mode, number in itertools.product(arguments.modes, range(arguments.rounds)):
                home = Path(folder, f"{mode}-{pairs}-{number}")
                result = measure(corpus, home, mode)
                result |= relative_throughput(result["nodes"], pairs, baseline_rate(corpus, home))
                if arguments.sockeye:
                    result["sockeye"] = sockeye_seconds(corpus, home)
                print(json.dumps({"pairs": pairs, "mode": mode, **result}), flush=True)


def measure(corpus: Path, home: Path, mode: str) -> dict[str, Any]:
    """Ingest a corpus, and return the cost of each node."""
    home.mkdir()
    config = home / "ingest.yaml"
    names = {
        side: ", ".join(f.name for f in sorted(corpus.glob(f"train-*.{end}")))
        for side, end in SIDES.items()
    }
    config.write_text(_CONFIG.format(root=corpus, mode=mode, **names), encoding="utf-8")
    start = time.time()
    nodes = run_pipeline(config, home, ["--to", NODES[-1]])
    return {
        "nodes": nodes,
        "wall": round(sum(cost["wall"] for cost in nodes.values()), 1),
        "cpu": round(sum(cost["cpu"] for cost in nodes.values()), 1),
        "start": round(min(cost["start"] for cost in nodes.values()) - start, 1),
        "peak_mib": max(cost["peak_mib"] for cost in nodes.values()),
        "worker_peak_mib": max(cost["worker_peak_mib"] for cost in nodes.values()),
    }


def run_pipeline(config: Path, home: Path, options: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Run a pipeline in a workspace of its own, and return the cost of each node that ran.

    Raises:
        SystemExit: it failed; the message is its error output.
    """
    environment = {**os.environ, "REGARD_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "regard.pipeline.cli", "run", str(config), *options]
    with (
        subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process,
        ProcessSampler(process.pid) as sampler,
    ):
        _, error_output = process.communicate()
    if process.returncode:
        raise SystemExit(error_output)
    log = max(home.glob("pipelines/*/runs/*/events.jsonl"), key=os.path.getmtime)
    return dict(_node_costs(log, sampler))


def training_files(corpus: Path, home: Path) -> list[tuple[str, list[Path]]]:
    """The tokenizer's file and the training files of both sides."""
    (tokenizers,) = home.glob("pipelines/ingest/artifacts/TokenizerTrainer/tokenizer/*")
    return [
        (f"{tokenizers}/{side}.model", sorted(corpus.glob(f"train-*.{language}")))
        for side, language in SIDES.items()
    ]


def sockeye_seconds(corpus: Path, home: Path) -> dict[str, float]:
    """The seconds of tokenization and of Sockeye's ``prepare_data``."""
    folder = home / "sockeye"
    folder.mkdir()
    sides = [
        {"tokenizer": tokenizer, "files": [*map(str, files)], "output": f"{folder}/{number}.txt"}
        for number, (tokenizer, files) in enumerate(training_files(corpus, home))
    ]
    cores = os.cpu_count() or 1
    request = {"sides": sides, "folder": str(folder), "processes": cores}
    command = [str(PEERS / "bin" / "python"), "-m", "benchmarks.peers.sockeye_ingest"]
    return run_process(command, request, cores)


def baseline_rate(corpus: Path, home: Path) -> float:
    """Pairs per second that SentencePiece encodes in one thread, both sides of each."""
    import sentencepiece

    sides = []
    for tokenizer_file, files in training_files(corpus, home):
        tokenizer = sentencepiece.SentencePieceProcessor(model_file=tokenizer_file)
        sides.append((tokenizer, list(_lines(files, _BASELINE_PAIRS))))
    seconds = []
    for _ in range(_BASELINE_REPEATS):
        start = time.perf_counter()
        for tokenizer, texts in sides:
            tokenizer.encode(texts, num_threads=1)
        seconds.append(time.perf_counter() - start)
    return len(sides[0][1]) / statistics.median(seconds)


def _lines(paths: Sequence[Path], limit: int) -> Iterator[str]:
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for line in itertools.islice(file, limit):
                yield line.removesuffix("\n")
                limit -= 1


def relative_throughput(nodes: Mapping[str, Any], pairs: int, baseline: float) -> dict[str, Any]:
    """The throughput, and its share of the baseline on all cores."""
    cores = os.cpu_count() or 1
    rate = pairs / sum(nodes[name]["wall"] for name in _MEASURED_NODES)
    return {
        "pairs_per_second": round(rate),
        "baseline_pairs_per_second": round(baseline),
        "cores": cores,
        "share_of_baseline": round(rate / (cores * baseline), 3),
    }


def _node_costs(log: Path, sampler: ProcessSampler) -> Iterator[tuple[str, dict[str, Any]]]:
    from regard.core import events

    starts: dict[str, float] = {}
    for event, _ in events.read(log):
        if event["kind"] != "node":
            continue
        if event["state"] == "running":
            starts[event["node"]] = event["time"]
            continue
        samples = sampler.between(starts[event["node"]], event["time"])
        yield (
            event["node"],
            {
                "start": starts[event["node"]],
                "wall": round(event["time"] - starts[event["node"]], 2),
                "cpu": round(samples[-1].cpu_seconds - samples[0].cpu_seconds, 2),
                "peak_mib": max(sample.largest for sample in samples) >> 20,
                "growth_mib": (max(s.largest for s in samples) - samples[0].largest) >> 20,
                "worker_peak_mib": max(sample.largest_worker for sample in samples) >> 20,
            },
        )


@dataclass(frozen=True)
class Sample:
    """The resources of all processes of a run at one time.

    Attributes:
        time: the time of the sample.
        cpu_seconds: the processor seconds of all processes so far, including those that have ended.
        largest: bytes of the largest process.
        largest_worker: bytes of the largest Beam worker process; 0 without one.
    """

    time: float
    cpu_seconds: float
    largest: int
    largest_worker: int


@dataclass
class ProcessSampler:
    """Samples a process and its descendants in a thread, within a ``with`` block."""

    pid: int
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._cpu_seconds: dict[tuple[int, float], float] = {}
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> ProcessSampler:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def between(self, start: float, end: float) -> list[Sample]:
        """The samples from the last one before ``start`` to the first one after ``end``."""
        first = max((i for i, sample in enumerate(self.samples) if sample.time <= start), default=0)
        last = next((i for i, sample in enumerate(self.samples) if sample.time >= end), None)
        return self.samples[first : len(self.samples) if last is None else last + 1]

    def _repeat(self) -> None:
        while not self._stop.wait(_SAMPLE_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        try:
            root = psutil.Process(self.pid)
            processes = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        largest = largest_worker = 0
        for process in processes:
            try:
                with process.oneshot():
                    times, memory = process.cpu_times(), process.memory_info().rss
                    key = process.pid, process.create_time()
                    self._cpu_seconds[key] = times.user + times.system
                    is_worker = any("sdk_worker_main" in part for part in process.cmdline())
            except psutil.Error:  # it has just ended
                continue
            largest = max(largest, memory)
            largest_worker = max(largest_worker, memory if is_worker else 0)
        self.samples.append(
            Sample(time.time(), sum(self._cpu_seconds.values()), largest, largest_worker)
        )


if __name__ == "__main__":
    main()
