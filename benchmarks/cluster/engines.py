"""Flink and Spark clusters with Beam's job servers and pools of Python workers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from benchmarks.cluster import distributions
from benchmarks.cluster.hosts import Host, hosts, wait_for

ROOT = Path(__file__).resolve().parents[2]
WORKER_HOSTS = 3
SLOTS = 2  # of each worker host
POOL_PORT = 50000
_JOB_PORT = 8099
_FLINK_PORT, _SPARK_PORT, _SPARK_PAGE_PORT = 8081, 7077, 8080
# Java 17 closes these packages, which Flink, Spark and Beam read by reflection.
_OPEN_PACKAGES = (
    *(f"java.lang{part}" for part in ("", ".invoke", ".reflect")),
    *(f"java.util{part}" for part in ("", ".concurrent", ".concurrent.atomic")),
    *("java.io", "java.net", "java.nio", "java.time", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
JAVA_OPTIONS = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPEN_PACKAGES]
_LOG4J = """
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1} %m%n
"""


class Engine(Protocol):
    """A kind of cluster.

    Attributes:
        workers: the number of tasks of a job that run at the same time, each with a Python worker.
        runner: the runner in Regard's section ``beam``.
        worker_class: a part of the command line of the JVM that runs the tasks.
    """

    workers: int
    runner: str
    worker_class: str

    def start(self, main: Host, workers: list[Host], folder: Path) -> None:
        """Start the cluster and the job server, and wait until they are ready."""

    def start_worker(self, main: Host, host: Host, folder: Path) -> None:
        """Start the JVM of a worker host."""


@dataclass
class Flink:
    """A standalone session cluster.

    Args:
        workers: the parallelism of a job.
        restarts: how often a job is restarted after a lost TaskManager; 0: Flink's default, never.
    """

    workers: int = 4
    restarts: int = 5
    runner = "flink"
    worker_class = "TaskManagerRunner"

    def start(self, main: Host, workers: list[Host], folder: Path) -> None:
        home = distributions.flink()
        jars = distributions.job_server(distributions.FLINK_RUNNER)
        self._start_script(home, main, main, folder, "jobmanager")
        for host in workers:
            self.start_worker(main, host, folder)
        _start_job_server(
            main,
            "org.apache.beam.runners.flink.FlinkJobServerDriver",
            [*jars.glob("*.jar"), *(home / "lib").glob("log4j*.jar")],
            folder,
            arguments=[f"--flink-master={main.address}:{_FLINK_PORT}"],
        )
        overview = f"http://{main.address}:{_FLINK_PORT}/overview"
        wait_for(lambda: _json(overview)["taskmanagers"] == len(workers), "all TaskManagers")

    def start_worker(self, main: Host, host: Host, folder: Path) -> None:
        self._start_script(distributions.flink(), main, host, folder, "taskmanager")

    def _start_script(self, home: Path, main: Host, host: Host, folder: Path, name: str) -> None:
        """Start a script of Flink, which replaces itself by Java."""
        host_folder = folder / f"{name}-{host.name or host.address}-{len(host.processes)}"
        (host_folder / "tmp").mkdir(parents=True)
        settings = {
            "env.java.opts.all": " ".join(JAVA_OPTIONS),
            "jobmanager.rpc.address": main.address,
            "jobmanager.bind-host": "0.0.0.0",
            "jobmanager.memory.process.size": "1g",
            "rest.address": main.address,
            "rest.bind-address": "0.0.0.0",
            "rest.port": _FLINK_PORT,
            "taskmanager.host": host.address,
            "taskmanager.bind-host": "0.0.0.0",
            "taskmanager.memory.process.size": "2g",
            # The shuffles of StatisticsGen's job need more buffers than Flink's defaults provide.
            "taskmanager.memory.network.min": "512m",
            "taskmanager.memory.network.max": "512m",
            "taskmanager.network.sort-shuffle.min-buffers": 64,
            "taskmanager.numberOfTaskSlots": SLOTS,
            "taskmanager.load-balance.mode": "SLOTS",  # all TaskManagers work
            "heartbeat.interval": 2000,
            "heartbeat.timeout": 20000,
            "pekko.ask.timeout": "120 s",  # for a machine with few cores
            "io.tmp.dirs": host_folder / "tmp",
        }
        if self.restarts:
            settings |= {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": self.restarts,
                "restart-strategy.fixed-delay.delay": "2 s",
            }
        lines = "".join(f"{key}: {json.dumps(str(value))}\n" for key, value in settings.items())
        (host_folder / "config.yaml").write_text(lines)
        (host_folder / "log4j-console.properties").write_text(_LOG4J)
        environment = {"FLINK_CONF_DIR": str(host_folder), "FLINK_LOG_DIR": str(host_folder)}
        command = [home / "bin" / f"{name}.sh", "start-foreground"]
        host.start(name, command, folder / f"{host_folder.name}.log", environment)


@dataclass
class Spark:
    """A standalone cluster with one executor per worker host.

    Args:
        workers: the cores of all executors.
        restarts: how often a task may fail before the job fails.
    """

    workers: int = 4
    restarts: int = 5
    runner = "spark"
    worker_class = "CoarseGrainedExecutorBackend"

    def start(self, main: Host, workers: list[Host], folder: Path) -> None:
        jars = distributions.job_server(distributions.SPARK_RUNNER)
        home = distributions.spark()
        (guava,) = jars.glob("guava-*.jar")  # Spark's is too old for Beam
        address = f"--host={main.address}", f"--port={_SPARK_PORT}"
        page = f"--webui-port={_SPARK_PAGE_PORT}"
        self._start_class(main, folder, "Master", *address, page)
        for host in workers:
            self.start_worker(main, host, folder)
        properties = {
            "spark.driver.host": main.address,
            "spark.cores.max": self.workers,
            "spark.task.maxFailures": self.restarts + 1,
            "spark.ui.enabled": "false",
            "spark.executor.extraClassPath": guava,
        }
        _start_job_server(
            main,
            "org.apache.beam.runners.spark.SparkJobServerDriver",
            [guava, *(home / "jars").glob("*.jar"), *jars.glob("*.jar")],
            folder,
            java=[f"-D{name}={value}" for name, value in properties.items()],
            arguments=[f"--spark-master-url=spark://{main.address}:{_SPARK_PORT}"],
        )
        state = f"http://{main.address}:{_SPARK_PAGE_PORT}/json/"
        wait_for(lambda: _json(state)["aliveworkers"] == len(workers), "all workers")

    def start_worker(self, main: Host, host: Host, folder: Path) -> None:
        size = f"--cores={SLOTS}", "--memory=1536m", f"--work-dir={folder / 'work'}"
        master = f"spark://{main.address}:{_SPARK_PORT}"
        self._start_class(host, folder, "Worker", f"--host={host.address}", *size, master)

    def _start_class(self, host: Host, folder: Path, name: str, *arguments: str) -> None:
        home = distributions.spark()
        # Arguments and values are separate for Spark.
        parts = [part for argument in arguments for part in argument.split("=", 1)]
        kind = f"org.apache.spark.deploy.{name.lower()}.{name}"
        environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host.address}
        log = folder / f"{name}-{host.name or host.address}.log"
        host.start(name, [home / "bin/spark-class", kind, *parts], log, environment)


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        engine: Flink or Spark.
        main: the host of the job server.
        workers: the hosts of TaskManagers or Spark workers, each with a pool of Python workers.
        folder: the folder with logs and staged files.
    """

    engine: Engine
    main: Host
    workers: list[Host]
    folder: Path

    @property
    def beam(self) -> dict[str, Any]:
        """The section ``beam`` of a configuration for this cluster."""
        section: dict[str, Any] = {
            "runner": self.engine.runner,
            "options": {
                "job_endpoint": f"{self.main.address}:{_JOB_PORT}",
                "environment_type": "EXTERNAL",
                "environment_config": f"localhost:{POOL_PORT}",
                "sdk_worker_parallelism": min(SLOTS, self.engine.workers),
                "environment_cache_millis": 60000,
            },
        }
        if self.engine.runner == "flink":
            section["workers"] = self.engine.workers
        return section

    def python_workers(self) -> dict[psutil.Process, Host]:
        """Beam's Python workers, and the host of each."""
        return {process: host for host in self.workers for process in host.children("SdkHarness(")}

    def kill_jvm(self, host: Host) -> None:
        """Kill the JVM that runs the tasks of a host, with SIGKILL."""
        (jvm,) = host.children(self.engine.worker_class)
        jvm.kill()


@contextlib.contextmanager
def cluster(engine: Engine, folder: Path) -> Iterator[Cluster]:
    """Run a cluster of ``WORKER_HOSTS`` hosts within a ``with`` block."""
    folder.mkdir(parents=True, exist_ok=True)
    with hosts(WORKER_HOSTS) as (main, workers):
        for host in workers if workers[0].name else workers[:1]:
            _start_pool(host, folder)
        engine.start(main, workers, folder)
        yield Cluster(engine, main, workers, folder)


def _start_pool(host: Host, folder: Path) -> None:
    # The pool starts its workers with the first `python` on the path, which must import Regard.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    module = "apache_beam.runners.worker.worker_pool_main"
    command = [sys.executable, "-m", module, f"--service_port={POOL_PORT}"]
    log = folder / f"pool-{host.name or host.address}.log"
    host.start("pool", command, log, {"PATH": path, "PYTHONPATH": str(ROOT)})
    wait_for(lambda: _listens(host.address, POOL_PORT), "the pool of Python workers")


def _start_job_server(
    main: Host,
    kind: str,
    jars: list[Path],
    folder: Path,
    arguments: list[str],
    java: list[str] | None = None,
) -> None:
    (folder / "log4j2.properties").write_text(_LOG4J)
    logging = f"-Dlog4j.configurationFile={folder / 'log4j2.properties'}"
    command = ["java", "-Xmx1g", *JAVA_OPTIONS, *(java or []), logging]
    command += ["-cp", os.pathsep.join(map(str, jars)), kind, *arguments]
    command += [f"--job-host={main.address}", f"--job-port={_JOB_PORT}"]
    command += [f"--artifacts-dir={folder / 'staged'}"]
    environment = {"SPARK_LOCAL_IP": main.address}
    main.start("job server", command, folder / "job-server.log", environment)
    wait_for(lambda: _listens(main.address, _JOB_PORT), "the job server")


def _listens(address: str, port: int) -> bool:
    with socket.create_connection((address, port), 1):
        return True


def _json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as response:
        return json.load(response)
