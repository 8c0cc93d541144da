"""A matrix of small models, its data, and the command with simulated workers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
COMMAND = f"""
import sys
from regard.pipeline.compare import jobs
command = jobs.job_command
jobs.job_command = lambda config: [sys.executable, "-c", {JOB!r}, *command(config)[3:]]
if "--with-plots" in sys.argv:
    sys.argv.remove("--with-plots")
else:  # they take longer than everything else
    from regard.pipeline.compare import plots
    plots.write_plots = lambda *_: []
from regard.pipeline.cli.app import main
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


class SimulatedComparison:
    """Runs ``regard compare`` in one workspace."""

    def __init__(self, folder: Path):
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
        """Starts the command with the matrix."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_NUM", "OMP"))}
        environment |= {"REGARD_HOME": str(self.home), "COLUMNS": "120", "NO_COLOR": "1"}
        environment |= {"FAKE_HOW": str(self.folder / "how.json"), "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, "compare", *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Runs the command and returns its exit status, output and errors."""
        process = self.start("sizes.yaml", *arguments)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def results(self) -> dict[str, dict]:
        """Returns the models of ``results.json`` by label."""
        content = json.loads((self.directory / "results.json").read_text())
        return {model["label"]: model for model in content["models"]}

    def states(self) -> list[str]:
        """Returns the state of each model, in the order of the matrix."""
        return [model["state"] for model in self.results().values()]


@pytest.fixture
def simulation(tmp_path: Path) -> SimulatedComparison:
    return SimulatedComparison(tmp_path)
