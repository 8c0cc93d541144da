"""What it costs to take a corpus in, from 10,000 to 1,000,000 pairs: CorpusGen to Preprocess.

    python benchmarks/ingest.py                         # as in benchmarks/ingest.md
    python benchmarks/ingest.py --pairs 10000 --modes in_process

Runs `regard run --to Preprocess` on Multi30k repeated with noise (`benchmarks/corpora.py`), each
size in each mode in a process and a workspace of its own, and looks at all processes of the run
ten times a second. Prints a line of JSON for each: of every node its wall and processor seconds,
and what the process that held most memory held. The processor's time is what counts on a machine
that others use, too.

Beside that stands `bare`: SentencePiece's own C++ encodes the same pairs with the run's own
tokenizer, in one process and one thread, a list of texts a call, and does nothing else. The share
is the pairs a second of CorpusGen and Preprocess together, by the wall, of what bare processes
would do on all cores.
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

_INGESTED = ("CorpusGen", "Preprocess")
_BARE_PAIRS = 100_000  # the first of the corpus: more give the same rate
_BARE_REPEATS = 3
NODES = (
    "CorpusGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "TokenizerTrainer",
    "Preprocess",
)
MODES = ("in_process", "processes")
FILES = 4  # a side: of as many that come together most corpora are
_SECONDS = 0.1
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
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--folder", type=Path, help="where corpora and runs go; default: a new one")
    arguments = parser.parse_args()
    multi30k = Path(os.environ["REGARD_DATA"], "multi30k")

    from benchmarks.corpora import write

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for pairs in arguments.pairs:
            corpus = Path(folder, f"corpus-{pairs}")
            write(multi30k, corpus, pairs, FILES)
            for mode in arguments.modes:
                home = Path(folder, f"{mode}-{pairs}")
                found = measure(corpus, home, mode)
                found |= share(found["nodes"], pairs, bare(corpus, home))
                print(json.dumps({"pairs": pairs, "mode": mode, **found}), flush=True)


def measure(corpus: Path, home: Path, mode: str) -> dict[str, Any]:
    """Takes a corpus in, and tells what each node took."""
    home.mkdir()
    config = home / "ingest.yaml"
    names = {
        side: ", ".join(f.name for f in sorted(corpus.glob(f"train-*.{end}")))
        for side, end in (("source", "en"), ("target", "de"))
    }
    config.write_text(_CONFIG.format(root=corpus, mode=mode, **names), encoding="utf-8")
    environment = {**os.environ, "REGARD_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pipeline.cli", "run", str(config), "--to", NODES[-1]]
    began = time.time()
    with (
        subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process,
        Watch(process.pid) as watch,
    ):
        _, told = process.communicate()
    if process.returncode:
        raise SystemExit(told)
    (log,) = home.glob("pipelines/ingest/runs/*/events.jsonl")
    nodes = dict(_costs(log, watch))
    return {
        "nodes": nodes,
        "wall": round(sum(cost["wall"] for cost in nodes.values()), 1),
        "processor": round(sum(cost["processor"] for cost in nodes.values()), 1),
        "start": round(min(cost["began"] for cost in nodes.values()) - began, 1),
        "peak_mib": max(cost["peak_mib"] for cost in nodes.values()),
        "worker_peak_mib": max(cost["worker_peak_mib"] for cost in nodes.values()),
    }


def bare(corpus: Path, home: Path) -> float:
    """Pairs a second that SentencePiece's C++ encodes in one thread, both sides of each."""
    import sentencepiece

    (trained,) = home.glob("pipelines/ingest/artifacts/TokenizerTrainer/tokenizer/*")
    sides = []
    for feature, end in (("source", "en"), ("target", "de")):
        tokenizer = sentencepiece.SentencePieceProcessor(model_file=f"{trained}/{feature}.model")
        sides.append((tokenizer, list(_lines(sorted(corpus.glob(f"train-*.{end}")), _BARE_PAIRS))))
    seconds = []
    for _ in range(_BARE_REPEATS):
        began = time.perf_counter()
        for tokenizer, texts in sides:
            tokenizer.encode(texts, num_threads=1)
        seconds.append(time.perf_counter() - began)
    return len(sides[0][1]) / statistics.median(seconds)


def _lines(paths: Sequence[Path], most: int) -> Iterator[str]:
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for line in itertools.islice(file, most):
                yield line.removesuffix("\n")
                most -= 1


def share(nodes: Mapping[str, Any], pairs: int, alone: float) -> dict[str, Any]:
    """How fast pairs come in, and what share of bare processes on all cores that is."""
    cores = os.cpu_count() or 1
    rate = pairs / sum(nodes[name]["wall"] for name in _INGESTED)
    return {
        "pairs_per_second": round(rate),
        "bare_pairs_per_second": round(alone),
        "cores": cores,
        "share_of_bare": round(rate / (cores * alone), 3),
    }


def _costs(log: Path, watch: Watch) -> Iterator[tuple[str, dict[str, Any]]]:
    from components import events

    began: dict[str, float] = {}
    for event, _ in events.read(log):
        if event["kind"] != "node":
            continue
        if event["state"] == "running":
            began[event["node"]] = event["time"]
            continue
        looks = watch.between(began[event["node"]], event["time"])
        yield (
            event["node"],
            {
                "began": began[event["node"]],
                "wall": round(event["time"] - began[event["node"]], 2),
                "processor": round(looks[-1].processor - looks[0].processor, 2),
                "peak_mib": max(look.largest for look in looks) >> 20,
                "worker_peak_mib": max(look.largest_worker for look in looks) >> 20,
            },
        )


@dataclass(frozen=True)
class Look:
    """What all processes of a run had taken and held at one time.

    Attributes:
        time: when.
        processor: seconds of all processes until then, of those too that have ended.
        largest: bytes of the process that held most.
        largest_worker: bytes of the Beam worker process that held most; 0 where there is none.
    """

    time: float
    processor: float
    largest: int
    largest_worker: int


@dataclass
class Watch:
    """While the block runs, a thread looks at a process and all that descend from it."""

    pid: int
    looks: list[Look] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._taken: dict[tuple[int, float], float] = {}
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def between(self, began: float, ended: float) -> list[Look]:
        """The looks from the last one before a time to the first one after another."""
        first = max((i for i, look in enumerate(self.looks) if look.time <= began), default=0)
        last = next((i for i, look in enumerate(self.looks) if look.time >= ended), None)
        return self.looks[first : len(self.looks) if last is None else last + 1]

    def _repeat(self) -> None:
        while not self._over.wait(_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            root = psutil.Process(self.pid)
            processes = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        largest = largest_worker = 0
        for process in processes:
            try:
                with process.oneshot():
                    taken, held = process.cpu_times(), process.memory_info().rss
                    self._taken[process.pid, process.create_time()] = taken.user + taken.system
                    is_worker = any("sdk_worker_main" in part for part in process.cmdline())
            except psutil.Error:  # it has ended since
                continue
            largest = max(largest, held)
            largest_worker = max(largest_worker, held if is_worker else 0)
        self.looks.append(Look(time.time(), sum(self._taken.values()), largest, largest_worker))


if __name__ == "__main__":
    main()
