"""Measure how the cost of every node grows with the number of pairs, from CorpusGen to Reporter.

    python -m benchmarks.scale                              # as in docs/how-to/scale.md
    python -m benchmarks.scale --pairs 10000 100000 --split 0.05

Runs whole pipelines on Multi30k repeated with noise (`benchmarks/corpora.py`), each size in a
workspace of its own, and samples all processes of the run ten times per second. The Trainer makes
20 steps of a small model, so that its cost per row is that of the input pipeline. By default, eval
and test are those of Multi30k; with ``--split``, they are this share of the pairs each.

Prints a line of JSON for each size, then two tables: processor seconds (user and system, of all
processes) with the microseconds per additional pair and the growth exponent, and peak memory of
the largest process. The exponent between two sizes, N^x, is that of the cost above the cost at the
smallest size, so that the constant cost of a node does not hide its growth; it is left out where
the additional cost is below two seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import ingest
from benchmarks.corpora import write
from benchmarks.markdown_table import format_table
from regard.pipeline.workspace import Workspace

FILES = 8  # per side
_MIN_SECONDS = 2.0  # of additional cost for an exponent; less is noise
_FIXED_SPLITS = """
  eval: {source: eval.en, target: eval.de}
  test: {source: test.en, target: test.de}"""
_CONFIG = """
name: scale
task: translation
data:
  root: ROOT
  train: {source: [SOURCE], target: [TARGET]}SPLITS
tokenizer: {type: bpe, vocab_size: 8000}
model:
  embedding: 64
  encoder: {type: recurrent, units: 64}
  decoder: {type: luong, units: 64}
training: {max_steps: STEPS, early_stopping: null}
search: {type: greedy, max_length_factor: 0, max_length_offset: 20}
evaluation: {metrics: [bleu, chrf]}
beam: {runner: RUNNER}
"""

Costs = Mapping[int, Mapping[str, Mapping[str, Any]]]  # by size and node


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--split", type=float, help="share of eval, and of test; default: 1,000")
    parser.add_argument("--runner", choices=ingest.MODES, default=ingest.MODES[0])
    parser.add_argument("--steps", type=int, default=20, help="of the Trainer")
    parser.add_argument("--to", metavar="NODE", help="stop after this node")
    parser.add_argument("--folder", type=Path, help="keep corpora and runs here; reuse them")
    parser.add_argument("--results", type=Path, help="JSON lines of earlier sizes; is extended")
    arguments = parser.parse_args()
    multi30k = Workspace.from_environment().data_root() / "multi30k"
    options = ["--publish-anyway", *(["--to", arguments.to] if arguments.to else [])]
    costs = _read(arguments.results)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for pairs in arguments.pairs:
            corpus = folder / f"corpus-{pairs}"
            if not corpus.exists():
                write(multi30k, folder / f"corpus-{pairs}.part", pairs, FILES)
                (folder / f"corpus-{pairs}.part").rename(corpus)
            home = folder / f"home-{pairs}-{arguments.split or 'fixed'}"
            home.mkdir(exist_ok=True)
            config = home / "scale.yaml"
            config.write_text(_config(corpus, arguments), encoding="utf-8")
            nodes = ingest.run_pipeline(config, home, options)
            costs[pairs] = {**costs.get(pairs, {}), **nodes}
            line = json.dumps({"pairs": pairs, "nodes": nodes})
            print(line, flush=True)
            if arguments.results:
                with arguments.results.open("a") as file:
                    file.write(line + "\n")
    print(tables(costs))


def _config(corpus: Path, arguments: argparse.Namespace) -> str:
    share = arguments.split
    values = {
        "ROOT": corpus,
        "SPLITS": f"\n  split: {{eval: {share}, test: {share}}}" if share else _FIXED_SPLITS,
        "STEPS": arguments.steps,
        "RUNNER": arguments.runner,
        **{
            name: ", ".join(path.name for path in sorted(corpus.glob(f"train-*.{end}")))
            for name, end in (("SOURCE", "en"), ("TARGET", "de"))
        },
    }
    text = _CONFIG
    for name, value in values.items():
        text = text.replace(name, str(value))
    return text


def _read(path: Path | None) -> dict[int, dict[str, Any]]:
    costs: dict[int, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        entry = json.loads(line)
        costs[entry["pairs"]] = {**costs.get(entry["pairs"], {}), **entry["nodes"]}
    return costs


def tables(costs: Costs) -> str:
    """The Markdown tables of processor time and of memory; a size may lack the last nodes."""
    sizes = sorted(costs)
    nodes = list(costs[sizes[0]])
    seconds = {
        node: [costs[size][node]["cpu"] if node in costs[size] else None for size in sizes]
        for node in nodes
    }
    header = [
        "processor s",
        *(f"{size:,}" for size in sizes),
        *(f"µs per pair to {size:,}" for size in sizes[1:]),
        *(f"exponent to {size:,}" for size in sizes[2:]),
    ]
    rows = [
        [
            node,
            *("" if value is None else f"{value:,.1f}" for value in values),
            *(_per_pair(sizes[i - 1 : i + 1], values[i - 1 : i + 1]) for i in range(1, len(sizes))),
            *(
                growth_exponent(sizes[i - 2 : i + 1], values[i - 2 : i + 1])
                for i in range(2, len(sizes))
            ),
        ]
        for node, values in seconds.items()
    ]
    memory = [
        [
            node,
            *(
                f"{costs[s][node]['peak_mib']:,} (+{costs[s][node]['growth_mib']:,})"
                if node in costs[s]
                else ""
                for s in sizes
            ),
        ]
        for node in nodes
    ]
    memory_header = ["peak MiB (growth in the node)", *(f"{size:,}" for size in sizes)]
    return f"{format_table(header, rows)}\n\n{format_table(memory_header, memory)}"


def _per_pair(sizes: Sequence[int], seconds: Sequence[float | None]) -> str:
    first, last = seconds
    if first is None or last is None or last - first < _MIN_SECONDS:
        return ""
    return f"{1e6 * (last - first) / (sizes[1] - sizes[0]):.0f}"


def growth_exponent(sizes: Sequence[int], seconds: Sequence[float | None]) -> str:
    """The exponent x of a cost a + b·N^x through three sizes; empty if the cost hardly grows.

    The constant cost a is that at the smallest size less its share of a linear growth.
    """
    (smallest, middle, largest), (first, second, third) = sizes, seconds
    if first is None or second is None or third is None:
        return ""
    constant = first - (second - first) / (middle - smallest) * smallest
    if second - constant < _MIN_SECONDS or third - constant < _MIN_SECONDS:
        return ""
    return f"{math.log((third - constant) / (second - constant)) / math.log(largest / middle):.2f}"


if __name__ == "__main__":
    main()
