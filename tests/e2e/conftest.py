"""A tiny pipeline, and the command line in separate processes."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from regard.pipeline.cli.app import app

ROOT = Path(__file__).parents[2]
# Keys of ``evaluation`` with which a model that has hardly learned is published.
NO_GATE = (
    "baselines: [], checks: {"
    + ", ".join(
        f"{name}: {{action: warn}}"
        for name in ("empty", "copies", "repetitions", "length_ratio", "script")
    )
    + "}"
)
CONFIG = """
name: tiny
task: translation
data:
  root: {data}
  train: train.tsv
  eval: eval.tsv
  test: test.tsv
tokenizer: {{type: char, vocab_size: 60, vocab_limit: soft}}
model:
  embedding: 16
  dropout: 0.0
  encoder: {{type: recurrent, units: 24}}
  decoder: {{type: luong, units: 24}}
training:
  batch_tokens: 512
  max_length: 30
  max_epochs: {epochs}
  learning_rate: 0.01
  checkpoint_seconds: 1
  early_stopping: null
search: {{type: beam, beam_size: 2, length_penalty: 0.0}}
evaluation: {{metrics: [exact_match, chrf], tokenize: none, NO_GATE}}
""".replace("NO_GATE", NO_GATE.replace("{", "{{").replace("}", "}}"))


class Shell:
    """Runs ``regard`` in one workspace.

    Args:
        folder: The folder of the data, the configuration and the workspace.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.home = folder / "home"
        self.environment = {
            **{k: v for k, v in os.environ.items() if k not in ("REGARD_EVENTS", "REGARD_DATA")},
            "REGARD_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }

    def start(self, *arguments: str, **options) -> subprocess.Popen:
        """Start a command."""
        return subprocess.Popen(
            [sys.executable, "-m", "regard.pipeline.cli", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess:
        """Run a command until it ends."""
        process = self.start(*arguments)
        out, err = process.communicate(text, timeout=900)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def call(self, *arguments: str) -> Result:
        """Run a command in this process, which has imported TensorFlow already."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            return CliRunner().invoke(app, list(arguments), env=self.environment)

    def events(self, run: int = -1) -> list[dict]:
        """The events of a run of the pipeline ``tiny``, by default the newest."""
        runs = sorted((self.home / "pipelines/tiny/runs").iterdir())
        path = runs[run] / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def states(self, run: int = -1) -> dict[str, str]:
        """The final state of each node of a run."""
        return {e["node"]: e["state"] for e in self.events(run) if e["kind"] == "node"}

    def configure(self, epochs: int) -> str:
        """Write the configuration and return its name."""
        text = CONFIG.format(data=self.folder / "data", epochs=epochs)
        (self.folder / "tiny.yaml").write_text(text)
        return "tiny.yaml"


def write_data(folder: Path) -> None:
    """Write words of up to six letters and their upper-case forms."""
    letters = random.Random(1)
    words = sorted(
        {"".join(letters.choices("abcdefgh", k=letters.randint(2, 6))) for _ in range(1400)}
    )
    letters.shuffle(words)
    folder.mkdir()
    for name, part in (("train", words[:900]), ("eval", words[900:960]), ("test", words[960:1020])):
        rows = "".join(f"{word}\t{word.upper()}\n" for word in part)
        (folder / f"{name}.tsv").write_text(rows)


@pytest.fixture(scope="module")
def shell(tmp_path_factory) -> Shell:
    """A fresh workspace with data; the tests of a module share it."""
    folder = tmp_path_factory.mktemp("e2e")
    write_data(folder / "data")
    return Shell(folder)
