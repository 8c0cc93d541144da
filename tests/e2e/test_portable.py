"""Beam's jobs in several processes and on a portable runner: the same results as in one process.

The portable runner is Beam's own job service, and its workers are started by a pool in a process
beside it, as those of Flink and Spark are on Kubernetes: a job says where the pool listens
(``--environment_type=EXTERNAL``), and the pool starts a worker wherever the job wants one.
"""

import contextlib
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import CONFIG, ROOT, Shell, write_data

pytestmark = pytest.mark.slow

BEAM_NODES = (
    "CorpusGen",
    "StatisticsGen",
    "ExampleValidator",
    "TokenizerTrainer",
    "Preprocess",
    "Predictor",
)
# Every job starts its workers anew, and each of them imports TensorFlow.
_SECONDS = 1500


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def service(module: str, port: int, log: Path, *arguments: str) -> Iterator[None]:
    """A module of Beam's as a process of its own, from when it listens."""
    # The pool starts its workers with the first `python` of the path, which must have Regard.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", module, *arguments]
    with log.open("w") as told:
        process = subprocess.Popen(command, env=environment, stdout=told, stderr=told)
    try:
        for _ in range(600):
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 1):
                break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def portable(tmp_path_factory) -> Iterator[str]:
    """The section that sends the jobs to a job service, and their work to a pool of workers."""
    folder = tmp_path_factory.mktemp("portable")
    jobs, pool = free_port(), free_port()
    runners, workers = "apache_beam.runners.portability", "apache_beam.runners.worker"
    staging = f"--staging_dir={folder / 'staging'}"
    with (
        service(
            f"{runners}.local_job_service_main", jobs, folder / "jobs.log", f"-p{jobs}", staging
        ),
        service(f"{workers}.worker_pool_main", pool, folder / "pool.log", f"--service_port={pool}"),
    ):
        yield f"""
beam:
  runner: portable
  options:
    job_endpoint: localhost:{jobs}
    environment_type: EXTERNAL
    environment_config: localhost:{pool}
"""
        started = (folder / "pool.log").read_text().count("Starting worker")
        assert started >= len(BEAM_NODES), "the jobs did not run in the pool"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "data"
    write_data(folder)
    return folder


def run(shell: Shell, data: Path, section: str, last: str) -> set[str]:
    """Runs up to a node with a section added to the file, and says how the nodes ended."""
    (shell.folder / "tiny.yaml").write_text(CONFIG.format(data=data, epochs=1) + section)
    process = shell.start("run", "tiny.yaml", "--to", last)
    told = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, "".join(told)
    return set(shell.states().values())


def ran(folder: Path, data: Path, section: str = "", last: str = "Preprocess") -> Shell:
    """A new workspace after a run."""
    folder.mkdir()
    shell = Shell(folder)
    assert run(shell, data, section, last) == {"done"}
    return shell


@pytest.fixture(scope="module")
def reference(data, tmp_path_factory) -> Shell:
    return ran(tmp_path_factory.mktemp("reference") / "run", data)


def artifact(shell: Shell, node: str, name: str) -> Path:
    (found,) = (shell.home / "pipelines/tiny/artifacts" / node / name).iterdir()
    return found


def digests(folder: Path) -> dict[str, str]:
    """The content of the files below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def check_same_data(one: Shell, other: Shell) -> None:
    """Every file is the same, byte for byte."""
    for node, name in (
        ("CorpusGen", "examples"),
        ("CorpusGen", "findings"),
        ("SchemaGen", "schema"),
        ("ExampleValidator", "findings"),
        ("TokenizerTrainer", "tokenizer"),
        ("Preprocess", "transformed_examples"),
    ):
        found = [digests(artifact(shell, node, name)) for shell in (one, other)]
        assert found[0]
        assert found[0] == found[1], node


def test_several_processes_give_the_same_data(reference, data, tmp_path):
    shell = ran(tmp_path / "run", data, "beam: {runner: processes, workers: 2}\n")
    check_same_data(reference, shell)
    # Where the jobs ran is no part of what was made: another runner finds it in the cache.
    assert run(shell, data, "", "Preprocess") == {"cached"}


def test_a_portable_runner_gives_the_same_data_and_decodes(reference, portable, data, tmp_path):
    shell = ran(tmp_path / "run", data, portable, last="Evaluator")
    check_same_data(reference, shell)
    hypotheses = artifact(shell, "Evaluator", "evaluation") / "hypotheses.txt"
    assert len(hypotheses.read_text().splitlines()) == 60
