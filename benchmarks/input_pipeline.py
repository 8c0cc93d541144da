"""Measure the Trainer's input pipeline: start, epoch and resume, from transformed rows to batches.

    python -m benchmarks.input_pipeline                     # as in benchmarks/optimization_log.md
    python -m benchmarks.input_pipeline --rows 100000 --rounds 1

The rows are drawn from Multi30k. Each measurement is a process of its own and prints a line of
JSON: processor seconds (user and system, of all threads) until the first batch and for one more
epoch, wall and processor seconds until the first batch of a fresh start and of a resume at 90% of
an epoch, and memory in MiB. The table has the medians of all rounds per additional row, so that
constant costs, such as tracing, do not count.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import workload
from benchmarks.markdown_table import format_table
from regard.pipeline.workspace import Workspace

_FILE_ROWS = 100_000
_TOKENIZER = {"type": "bpe", "vocab_size": 8000}


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs=2, default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the files here; reuse them")
    arguments = parser.parse_args()
    results: dict[int, list[dict[str, float]]] = {rows: [] for rows in arguments.rows}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        workload.prepare(Workspace.from_environment().data_root() / "multi30k", folder, _TOKENIZER)
        for rows in arguments.rows:
            write(folder, rows)
        command = [sys.executable, "-m", "benchmarks.input_pipeline", "process"]
        for _ in range(arguments.rounds):
            for rows in arguments.rows:
                files = [str(path) for path in _paths(folder, rows)]
                results[rows].append(workload.run_process(command, {"files": files}, 2))
                print(json.dumps({"rows": rows, **results[rows][-1]}), flush=True)
    table = []
    small, large = arguments.rows
    for name in results[small][0]:
        values = [[result[name] for result in results[rows]] for rows in (small, large)]
        medians = [statistics.median(of_size) for of_size in values]
        limits = f"{min(values[1]):.2f} to {max(values[1]):.2f}"
        per_row = f"{1e6 * (medians[1] - medians[0]) / (large - small):.2f}"
        table.append([name, *(f"{m:.2f}" for m in medians), limits, per_row])
    header = ["", f"{small:,} rows", f"{large:,} rows", "rounds", "per 10⁶ additional rows"]
    print(format_table(header, table))


def write(folder: Path, rows: int) -> None:
    """Write files of rows that are drawn from those of the workload, in the same way each time."""
    import pyarrow as pa

    from regard.components.common.row_files import write_rows

    with pa.memory_map(str(folder / workload.ROWS)) as file:
        table = pa.ipc.open_stream(file).read_all().combine_chunks()
    for number, path in enumerate(_paths(folder, rows)):
        count = min(_FILE_ROWS, rows - number * _FILE_ROWS)
        chosen = table.take(np.random.default_rng(number).integers(0, len(table), count))
        if not path.exists():
            write_rows(path, table.schema, chosen.combine_chunks().to_batches(max_chunksize=1024))


def _paths(folder: Path, rows: int) -> list[Path]:
    return [folder / f"rows-{rows}-{i:03d}.arrow" for i in range(-(-rows // _FILE_ROWS))]


def measure(files: list[str]) -> dict[str, float]:
    """Measure in this process: see the module."""
    from regard.components.trainer.batches import Batches
    from regard.components.trainer.tensor_batches import epoch_dataset
    from regard.models import tasks

    def start(share: float, files: list[str]) -> tuple[Any, float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        batches = Batches(
            files, tasks.get_network("translation"), batch_tokens=4096, max_length=100
        )
        batches.count()
        next(iter(epoch_dataset(batches, 0, skip=int(share * batches.size))))
        return batches, time.perf_counter() - wall, time.process_time() - cpu

    start(0, files[:1])  # TensorFlow starts its threads
    before = _memory()
    batches, wall, cpu = start(0, files)
    epoch_cpu = time.process_time()
    for _ in epoch_dataset(batches, 1):
        pass
    epoch_cpu = time.process_time() - epoch_cpu
    after = _memory()
    _, resumed_wall, resumed_cpu = start(0.9, files)
    return {
        "start, processor s": cpu,
        "epoch, processor s": epoch_cpu,
        "start, s": wall,
        "resume at 90%, s": resumed_wall,
        "resume at 90%, processor s": resumed_cpu,
        "peak memory, MiB": after["VmHWM"],
        "growth without mapped files, MiB": after["RssAnon"] - before["RssAnon"],
    }


def _memory() -> dict[str, float]:
    status = Path("/proc/self/status").read_text()
    return {name: int(kib) / 1024 for name, kib in re.findall(r"(\w+):\s+(\d+) kB", status)}


if __name__ == "__main__":
    if sys.argv[1:] == ["process"]:
        print(json.dumps(measure(json.load(sys.stdin)["files"])))
    else:
        main()
