"""Beam jobs in several processes and on a portable runner give the same results as in one process.

The portable runner is Beam's job service. A worker pool in another process starts its workers, as
on Kubernetes with Flink or Spark (``--environment_type=EXTERNAL``).
"""

import contextlib
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import CONFIG, Shell, write_data
from tests.processes import free_port, service

pytestmark = pytest.mark.slow

BEAM_NODES = (
    "CorpusGen",
    "StatisticsGen",
    "ExampleValidator",
    "TokenizerTrainer",
    "Preprocess",
    "Predictor",
)
# Every job starts new workers, which import TensorFlow.
_TIMEOUT_SECONDS = 1500


@contextlib.contextmanager
def beam_services(folder: Path) -> Iterator[tuple[int, int]]:
    """Start a job service and a worker pool, whose log is ``pool.log``, and yield their ports."""
    jobs, pool = free_port(), free_port()
    python, beam = (sys.executable, "-m"), "apache_beam.runners"
    runner = f"{beam}.portability.local_job_service_main"
    staging = f"--staging_dir={folder / 'staging'}"
    workers = f"{beam}.worker.worker_pool_main"
    with (
        service(jobs, folder / "jobs.log", *python, runner, f"-p{jobs}", staging),
        service(pool, folder / "pool.log", *python, workers, f"--service_port={pool}"),
    ):
        yield jobs, pool


@pytest.fixture(scope="module")
def portable(tmp_path_factory) -> Iterator[str]:
    """The section that uses a job service and a worker pool."""
    folder = tmp_path_factory.mktemp("portable")
    with beam_services(folder) as (jobs, pool):
        yield f"""
beam:
  runner: portable
  options:
    job_endpoint: localhost:{jobs}
    environment_type: EXTERNAL
    environment_config: localhost:{pool}
"""
        worker_count = (folder / "pool.log").read_text().count("Starting worker")
        assert worker_count >= len(BEAM_NODES), "the jobs did not run in the pool"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "data"
    write_data(folder)
    return folder


def run(shell: Shell, data: Path, section: str, last: str) -> set[str]:
    """Run up to a node with an additional section, and return the states of the nodes."""
    (shell.folder / "tiny.yaml").write_text(CONFIG.format(data=data, epochs=1) + section)
    process = shell.start("run", "tiny.yaml", "--to", last)
    output = process.communicate(timeout=_TIMEOUT_SECONDS)
    assert process.returncode == 0, "".join(output)
    return set(shell.states().values())


def run_in_new_workspace(
    folder: Path, data: Path, section: str = "", last: str = "Preprocess"
) -> Shell:
    """Run in a new workspace."""
    folder.mkdir()
    shell = Shell(folder)
    assert run(shell, data, section, last) == {"done"}
    return shell


@pytest.fixture(scope="module")
def reference(data, tmp_path_factory) -> Shell:
    return run_in_new_workspace(tmp_path_factory.mktemp("reference") / "run", data)


def artifact(shell: Shell, node: str, name: str) -> Path:
    (folder,) = (shell.home / "pipelines/tiny/artifacts" / node / name).iterdir()
    return folder


def digests(folder: Path) -> dict[str, str]:
    """The digests of the files in a folder tree."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def check_same_data(first: Shell, second: Shell) -> None:
    """Check that all files are identical."""
    for node, name in (
        ("CorpusGen", "examples"),
        ("CorpusGen", "findings"),
        ("SchemaGen", "schema"),
        ("ExampleValidator", "findings"),
        ("TokenizerTrainer", "tokenizer"),
        ("Preprocess", "transformed_examples"),
    ):
        pair = [digests(artifact(shell, node, name)) for shell in (first, second)]
        assert pair[0]
        assert pair[0] == pair[1], node


def test_several_processes(reference, data, tmp_path):
    shell = run_in_new_workspace(tmp_path / "run", data, "beam: {runner: processes, workers: 2}\n")
    check_same_data(reference, shell)
    # The runner is not part of the cache key.
    assert run(shell, data, "", "Preprocess") == {"cached"}


def test_portable_runner(reference, portable, data, tmp_path):
    shell = run_in_new_workspace(tmp_path / "run", data, portable, last="Evaluator")
    check_same_data(reference, shell)
    hypotheses = artifact(shell, "Evaluator", "evaluation") / "hypotheses.txt"
    assert len(hypotheses.read_text().splitlines()) == 60
