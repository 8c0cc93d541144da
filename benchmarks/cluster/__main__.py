"""Run the pipeline on a real Flink or Spark cluster on this machine, also while parts of it die.

    python -m benchmarks.cluster flink
    python -m benchmarks.cluster spark --pairs 20000 --experiments equality faults

Starts a standalone cluster of three worker hosts with two slots each, Beam's job server, and a pool
of Python workers on each worker host. Root gets a network namespace per host, everyone else
processes that share the loopback interface. Requires Java 17 and Maven, downloads 350 MB, and needs
8 GB of memory.

The experiments, each in a workspace of its own:

equality  The whole pipeline; all files that Beam jobs write are those of `in_process`, except that
          scores may differ by rounding.
faults    The same while the JVM of a worker host and then a Python worker are killed in the middle
          of a job. The files are equal, and no temporary file is left.
control   Without restarts, a killed JVM fails the run, and the error names the cause.
scaling   The nodes up to Preprocess with 1, 2 and 4 workers.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil

from benchmarks import corpora
from benchmarks.cluster.engines import Cluster, Engine, Flink, Spark, cluster
from benchmarks.cluster.hosts import Host, wait_for
from benchmarks.cluster.pipeline_run import PipelineRun, configuration
from benchmarks.cluster.predictions import find_different_columns
from benchmarks.markdown_table import format_table
from regard.core.owned_folders import SCRATCH, mark_name
from regard.pipeline.workspace import Workspace

ENGINES: dict[str, Callable[..., Engine]] = {"flink": Flink, "spark": Spark}
EXPERIMENTS = ("equality", "faults", "control", "scaling")
FILES = 8  # per side of train
_HOURS = 3600.0
_BUSY_SECONDS = 8.0  # of processor time, after which a worker has imported TensorFlow


def main() -> None:
    """Run the experiments, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--pairs", type=int, default=500_000)
    parser.add_argument("--steps", type=int, default=20, help="of the training")
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS)
    parser.add_argument("--folder", type=Path, help="for all files; default: a temporary one")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # stops the cluster
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        corpus = folder / "corpus"
        if not corpus.exists():
            multi30k = Workspace.from_environment().data_root() / "multi30k"
            corpora.write(multi30k, corpus, arguments.pairs, FILES)
        bench = Bench(arguments.engine, configuration(corpus, arguments.steps), folder)
        for name in arguments.experiments:
            result = getattr(bench, name)()
            print(
                json.dumps({"engine": arguments.engine, "experiment": name, **result}), flush=True
            )


class Bench:
    """The experiments with one engine.

    Args:
        engine: one of ``ENGINES``.
        config: the configuration of the pipeline.
        folder: the folder for workspaces and logs.
    """

    def __init__(self, engine: str, config: dict[str, Any], folder: Path):
        self._engine = ENGINES[engine]
        self._config = config
        self._folder = folder
        self._local: PipelineRun | None = None

    def equality(self) -> dict[str, Any]:
        """Run the whole pipeline, and count the Python workers that worked."""
        with self._cluster("equality") as running:
            run = self._run("equality", running)
            counter = WorkerCounter(running)
            run.start()
            while run.process.poll() is None:
                counter.sample()
                time.sleep(1)
            self._check(run)
        return {"workers": counter.busy(), "seconds": run.seconds()}

    def faults(self) -> dict[str, Any]:
        """Kill a JVM while CorpusGen runs, and a Python worker while Preprocess runs."""
        with self._cluster("faults") as running:
            run = self._run("faults", running)
            run.start()
            _, host = self._wait_for_work(run, running, "CorpusGen")
            running.kill_jvm(host)
            worker, _ = self._wait_for_work(run, running, "Preprocess")
            worker.kill()
            self._check(run)
            wait_for(lambda: not running.python_workers(), "the end of all Python workers")
        return {"seconds": run.seconds(), "files": len(run.digests())}

    def control(self) -> dict[str, Any]:
        """Kill a JVM of a cluster that does not restart jobs."""
        with self._cluster("control", restarts=0) as running:
            run = self._run("control", running)
            run.start("--to", "CorpusGen")
            _, host = self._wait_for_work(run, running, "CorpusGen")
            running.kill_jvm(host)
            status = run.wait(_HOURS)
        assert status != 0, run.output
        assert not run.temporary_files(), run.temporary_files()
        return {"status": status, "output": run.output[-2000:]}

    def scaling(self) -> dict[str, Any]:
        """Measure the ingestion with 1, 2 and 4 workers."""
        rows = {}
        for workers in (1, 2, 4):
            with self._cluster(f"scaling-{workers}", workers=workers) as running:
                run = self._run(f"scaling-{workers}", running)
                run.start("--to", "Preprocess")
                assert run.wait(_HOURS) == 0, run.output
                rows[workers] = run.seconds()
        nodes = list(rows[1])
        cells = [[str(count), *(f"{row[n]:.0f}" for n in nodes)] for count, row in rows.items()]
        print(format_table(["workers", *nodes], cells))
        return {"seconds": rows}

    def _cluster(self, name: str, **options: int) -> AbstractContextManager[Cluster]:
        return cluster(self._engine(**options), self._folder / f"{name}-cluster")

    def _run(self, name: str, running: Cluster) -> PipelineRun:
        return PipelineRun(self._folder / name, self._config, running.beam)

    def _check(self, run: PipelineRun) -> None:
        """Check that a run ends with the same files as one in the process of each node.

        The scores in the file of predictions may differ by rounding.
        """
        assert run.wait(_HOURS) == 0, run.output
        if self._local is None:
            local = PipelineRun(self._folder / "in_process", self._config, {"runner": "in_process"})
            local.start()
            assert local.wait(_HOURS) == 0, local.output
            self._local = local
        digests, expected = run.digests(), self._local.digests()
        different = {
            name
            for name in digests.keys() | expected.keys()
            if digests.get(name) != expected.get(name)
        }
        assert not different, sorted(different)
        columns = find_different_columns(run.predictions(), self._local.predictions())
        assert not columns, columns
        assert not run.temporary_files(), run.temporary_files()

    def _wait_for_work(
        self, run: PipelineRun, running: Cluster, node: str
    ) -> tuple[psutil.Process, Host]:
        """Wait until a node writes files, and return a Python worker that works, and its host."""

        def is_writing() -> bool:
            assert run.process.poll() is None, run.output
            assert run.state(node) in (None, "running"), f"{node} was too fast"
            files = [path for path in run.temporary_files(node) if path.is_file()]
            return any(path.name != mark_name(SCRATCH) for path in files)

        wait_for(is_writing, f"work of {node}", _HOURS)
        workers = running.python_workers()
        worker = max(workers, key=_cpu_seconds)
        return worker, workers[worker]


class WorkerCounter:
    """Processor time of the Python workers of a cluster."""

    def __init__(self, running: Cluster):
        self._running = running
        self._seconds: dict[tuple[int, float], float] = {}

    def sample(self) -> None:
        """Record the processor time of all workers so far."""
        for worker in self._running.python_workers():
            with_time = worker.pid, worker.create_time()
            self._seconds[with_time] = max(_cpu_seconds(worker), self._seconds.get(with_time, 0))

    def busy(self) -> dict[str, Any]:
        """How many workers started, and how many of them worked."""
        busy = [seconds for seconds in self._seconds.values() if seconds > _BUSY_SECONDS]
        return {"started": len(self._seconds), "busy": len(busy), "cpu_seconds": sorted(busy)}


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


if __name__ == "__main__":
    main()
