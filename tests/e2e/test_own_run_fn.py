"""A model that the `run_fn` of the documentation trains is evaluated, published and served."""

import json
import os
import random
import re
import sys
from pathlib import Path

import httpx
import pytest
from tfx.orchestration.local.local_dag_runner import LocalDagRunner

from regard.pipeline import config
from regard.pipeline.workspace import Workspace
from tests.pipeline.graphs import create_pipeline
from tests.processes import free_port, service

ROOT = Path(__file__).parents[2]
WORDS = dict(
    zip(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"],
        ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"],
        strict=True,
    )
)
CONFIG = """
name: digits
data: {{root: {data}, train: train.tsv, eval: eval.tsv, test: test.tsv}}
tokenizer: {{type: word, vocab_size: 20, vocab_limit: soft}}
training: {{run_fn: own_run_fn:run_fn}}
evaluation: {{metrics: [bleu, exact_match], thresholds: {{bleu: 90}}}}
"""


def run_fn_of_the_documentation():
    page = (ROOT / "docs/how-to/tfx-artifacts.md").read_text(encoding="utf-8")
    (code,) = (
        code for code in re.findall(r"```python\n(.*?)```", page, re.S) if "def run_fn" in code
    )
    return code


def write_digits(folder):
    """Write numbers of four to nine digits in words."""
    draw = random.Random(0)
    rows = {tuple(draw.choices(list(WORDS), k=draw.randint(4, 9))) for _ in range(1100)}
    lines = [f"{' '.join(row)}\t{' '.join(WORDS[word] for word in row)}\n" for row in sorted(rows)]
    draw.shuffle(lines)
    folder.mkdir()
    for name, part in (("train", lines[:900]), ("eval", lines[900:950]), ("test", lines[950:1000])):
        (folder / f"{name}.tsv").write_text("".join(part), encoding="utf-8")


@pytest.mark.slow
def test_a_model_of_ones_own_is_published_and_served(tmp_path, monkeypatch):
    write_digits(tmp_path / "data")
    (tmp_path / "own_run_fn.py").write_text(run_fn_of_the_documentation(), encoding="utf-8")
    (tmp_path / "digits.yaml").write_text(CONFIG.format(data=tmp_path / "data"))
    monkeypatch.setattr(sys, "path", [*sys.path])  # the graph adds the folder of the file
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    workspace = Workspace(tmp_path / "home")
    pipeline = create_pipeline(config.load(tmp_path / "digits.yaml"), workspace)
    LocalDagRunner().run(pipeline)

    version = workspace.registry / "digits" / "1"
    record = json.loads((version / "regard.json").read_text())
    assert record["metrics"]["bleu"]["value"] > 90
    assert (version / "assets.extra/contract.json").is_file()

    port = free_port()
    command = (sys.executable, "-m", "regard.pipeline.cli", "serve", "digits", "--port", "0")
    options = ("--registry", str(workspace.registry), "--rest-api-port", str(port))
    with service(port, tmp_path / "serve.log", *command, *options):
        request = {"instances": ["one three seven", "nine zero nine zero nine"]}
        address = f"http://127.0.0.1:{port}/v1/models/digits:predict"
        response = httpx.post(address, json=request, timeout=60)
    outputs = ["eins drei sieben", "neun null neun null neun"]
    assert response.json() == {"predictions": outputs}
