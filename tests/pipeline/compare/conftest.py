"""A matrix of small models, its data, and the command with simulated workers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.pipeline.cli.app import main
from regard.pipeline.compare import jobs, plots
from regard.pipeline.compare.jobs import ComparisonOutcome, job_command

ROOT = Path(__file__).parents[3]
WORKER = Path(__file__).with_name("fake_worker.py")
# The job with a worker that does not need TFX, and the command with that job.
JOB = f"""
import sys
from regard.core.processes import end_with_parent
from regard.pipeline.runs import supervise
supervise.worker_command = lambda run, *_: [sys.executable, {str(WORKER)!r}, str(run.directory)]
from regard.pipeline.cli.app import main
end_with_parent()
main()
"""
COMMAND = """
from regard.pipeline.cli.app import main
from regard.pipeline.compare import jobs, plots
from tests.pipeline.compare.conftest import fake_job_command
jobs.job_command = fake_job_command
plots.write_plots = lambda *_: []
main()
"""
MATRIX = """\
name: sizes
base:
  data: {root: data, train: train.tsv}
  model:
    embedding: 8
    encoder: {type: recurrent, units: 4}
    decoder: {type: luong, units: 8}
models:
  small:
  large:
    model.encoder.units: 6
  wide:
    model: {encoder: {units: 9}, embedding: 16}
"""


def fake_job_command(config: Path) -> list[str]:
    """The command of a job whose worker is simulated."""
    return [sys.executable, "-c", JOB, *job_command(config)[3:]]


class SimulatedComparison:
    """Runs ``regard compare`` in one workspace."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ):
        self._monkeypatch = monkeypatch
        self._capfd = capfd
        self.folder = folder
        self.home = folder / "home"
        self.directory = self.home / "compare" / "sizes"
        self.matrix = folder / "sizes.yaml"
        self.matrix.write_text(MATRIX)
        (folder / "data").mkdir()
        (folder / "data" / "train.tsv").write_text("".join(f"a {i}\tb\n" for i in range(200)))
        self.simulate()

    def simulate(self, **how: str) -> None:
        """Sets how each model behaves from now on."""
        (self.folder / "how.json").write_text(json.dumps(how))

    def started(self) -> list[str]:
        """Returns the labels whose workers have started, in order."""
        return [label for label, _ in self._starts()]

    def threads(self) -> list[str]:
        """Returns the number of threads of each worker that has started."""
        return [threads for _, threads in self._starts()]

    def _starts(self) -> list[list[str]]:
        path = self.folder / "started.txt"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def start(self, *arguments: str) -> subprocess.Popen:
        """Starts the command in a process, for signals."""
        self._set_environment()
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, "compare", "sizes.yaml", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *arguments: str, with_plots: bool = False, with_worker: bool = False
    ) -> tuple[int, str, str]:
        """Runs the command in this process; returns its exit status, output and errors.

        Args:
            with_plots: Whether the plots are drawn.
            with_worker: Whether the jobs start the worker that needs TFX.
        """
        self._set_environment()
        self._monkeypatch.chdir(self.folder)
        self._monkeypatch.setattr(sys, "argv", ["regard", "compare", "sizes.yaml", *arguments])
        if not with_worker:
            self._monkeypatch.setattr(jobs, "job_command", fake_job_command)
        if not with_plots:
            self._monkeypatch.setattr(plots, "write_plots", lambda *_: [])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *self._capfd.readouterr()

    def train_nothing(self, **failures: str) -> list[str]:
        """Replaces the trainings; returns a list that receives the labels to train."""
        labels: list[str] = []

        def train_models(comparison: object, selected: list[str], *_: object) -> ComparisonOutcome:
            labels.extend(selected)
            return ComparisonOutcome(failures=failures)

        self._monkeypatch.setattr("regard.pipeline.compare.run.train_models", train_models)
        return labels

    def _set_environment(self) -> None:
        for name in [name for name in os.environ if name.startswith(("TF_NUM", "OMP"))]:
            self._monkeypatch.delenv(name)
        environment = {"REGARD_HOME": str(self.home), "COLUMNS": "120", "NO_COLOR": "1"}
        environment |= {"FAKE_HOW": str(self.folder / "how.json"), "PYTHONPATH": str(ROOT)}
        for name, value in environment.items():
            self._monkeypatch.setenv(name, value)

    def results(self) -> dict[str, dict]:
        """Returns the models of ``results.json`` by label."""
        content = json.loads((self.directory / "results.json").read_text())
        return {model["label"]: model for model in content["models"]}

    def states(self) -> list[str]:
        """Returns the state of each model, in the order of the matrix."""
        return [model["state"] for model in self.results().values()]


@pytest.fixture
def simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> SimulatedComparison:
    return SimulatedComparison(tmp_path, monkeypatch, capfd)
