"""Two small models, from one file to the table, killed and resumed."""

import json
import signal
import time

import pytest

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


def compare(shell, *arguments):
    """Run the comparison, and return its models."""
    result = shell.run("compare", "tiny.yaml", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads((shell.home / "compare/tiny/results.json").read_text())["models"]


@pytest.mark.slow
def test_killed_comparison_of_two_models_resumes(shell):
    (shell.folder / "tiny.yaml").write_text(MATRIX)
    first = shell.start("compare", "tiny.yaml")
    end = time.monotonic() + 300
    while not list(shell.home.glob("pipelines/tiny-none/checkpoints/*/last.npz")):
        assert time.monotonic() < end
        assert first.poll() is None, first.communicate()
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.communicate()

    none, dot = compare(shell)
    for model in (none, dot):
        assert model["state"] == "finished"
        assert model["parameters"] > 1000
        assert model["epochs"] == 4
        assert model["perplexity"] == min(entry["perplexity"] for entry in model["history"])
        assert sum(bucket["rows"] for bucket in model["by_length"]) == model["test_rows"] == 60
        assert model["perplexity"] < model["history"][0]["perplexity"]
        assert 0.0 < model["metrics"]["bleu"]["value"] < 100.0
    assert none["parameters"] != dot["parameters"]
    directory = shell.home / "compare/tiny"
    assert "tok:char" in (directory / "table.md").read_text()
    assert (directory / "bleu-by-length.svg").stat().st_size > 1000

    again = compare(shell, "--only", "dot")
    record = max(shell.home.glob("pipelines/tiny-dot/runs/*/run.json"))
    nodes = json.loads(record.read_text())["nodes"]
    assert {facts["state"] for facts in nodes.values()} == {"cached"}
    assert [model["metrics"] for model in again] == [none["metrics"], dot["metrics"]]
