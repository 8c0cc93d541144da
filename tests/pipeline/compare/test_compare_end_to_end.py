"""Two small models, from one file to the table, killed and resumed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MATRIX = """\
name: tiny
base:
  data: {root: data, train: train.tsv, eval: eval.tsv, test: test.tsv}
  tokenizer: {type: char, vocab_size: 60, vocab_limit: soft}
  model:
    embedding: 16
    dropout: 0.0
    encoder: {type: recurrent, units: 16}
    decoder: {type: luong, units: 32}
  training:
    batch_tokens: 512
    max_length: 30
    max_epochs: 4
    learning_rate: 0.01
    checkpoint_seconds: 1
    early_stopping: null
  search: {type: greedy}
  evaluation: {metrics: [bleu, chrf], tokenize: char, length_buckets: [3, 5]}
models:
  none: {model: {attention: null, decoder.input_feeding: false}}
  dot: {model.attention: {score: dot}}
"""


def write_data(folder):
    letters = random.Random(1)
    words = sorted(
        {"".join(letters.choices("abcdefgh", k=letters.randint(2, 6))) for _ in range(900)}
    )
    letters.shuffle(words)
    folder.mkdir()
    for name, part in (("train", words[:500]), ("eval", words[500:560]), ("test", words[560:620])):
        rows = "".join(f"{word}\t{word.upper()}\n" for word in part)
        (folder / f"{name}.tsv").write_text(rows)


def start(folder, *arguments):
    environment = {**os.environ, "REGARD_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "regard.pipeline.cli", "compare", "tiny.yaml", *arguments],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finish(process):
    out, _ = process.communicate(timeout=900)
    assert process.returncode == 0, out


def nodes(folder, pipeline):
    """Returns the state of each node of the newest run."""
    runs = sorted((folder / "home" / "pipelines" / pipeline / "runs").iterdir())
    states = json.loads((runs[-1] / "run.json").read_text())["nodes"]
    return {node: facts["state"] for node, facts in states.items()}


@pytest.mark.slow
def test_killed_comparison_of_two_models_resumes(tmp_path):
    write_data(tmp_path / "data")
    (tmp_path / "tiny.yaml").write_text(MATRIX)
    first = start(tmp_path)
    checkpoints = tmp_path / "home" / "pipelines" / "tiny-none" / "checkpoints"
    end = time.monotonic() + 300
    while not list(checkpoints.glob("*/last.npz")):
        assert time.monotonic() < end
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.communicate()

    finish(start(tmp_path))
    directory = tmp_path / "home" / "compare" / "tiny"
    content = json.loads((directory / "results.json").read_text())
    none, dot = content["models"]
    for model in (none, dot):
        assert model["state"] == "finished"
        assert model["parameters"] > 1000
        assert model["epochs"] == 4
        assert model["perplexity"] == min(entry["perplexity"] for entry in model["history"])
        assert sum(bucket["rows"] for bucket in model["by_length"]) == model["test_rows"] == 60
        assert model["perplexity"] < model["history"][0]["perplexity"]
        assert 0.0 < model["metrics"]["bleu"]["value"] < 100.0
    assert none["parameters"] != dot["parameters"]
    assert "tok:char" in (directory / "table.md").read_text()
    assert (directory / "bleu-by-length.svg").stat().st_size > 1000

    finish(start(tmp_path, "--only", "dot"))
    assert set(nodes(tmp_path, "tiny-dot").values()) == {"cached"}
    again = json.loads((directory / "results.json").read_text())["models"]
    assert [m["metrics"] for m in again] == [m["metrics"] for m in (none, dot)]
