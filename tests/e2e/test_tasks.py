"""Each task, from files to a published model and a prediction in another process."""

import dataclasses
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from regard.models.tasks import TASKS
from regard.pipeline.datasets import point_sets, scenes, stories
from tests.e2e.conftest import Shell
from tests.tolerances import close_to

COMMON = "training: {{max_epochs: {epochs}, early_stopping: null, checkpoint_seconds: 5, {more}}}\n"
WORDS = ["red", "green", "blue", "cat", "dog", "fish", "runs", "sits", "sleeps", "here", "there"]


def similarity(folder: Path, draw: random.Random) -> str:
    rows = []
    for _ in range(300):
        first, second = (draw.sample(WORDS, 4) for _ in range(2))
        score = len({*first} & {*second})
        rows.append(f"{score}\t{' '.join(first)}\t{' '.join(second)}\n")
    rows[7] = "9\tout of\tits range\n"
    rows[9] = "\tno score\there\n"
    (folder / "pairs.tsv").write_text("".join(rows))
    return """
data: {root: ROOT, train: pairs.tsv, columns: {score: 1, first: 2, second: 3}, bad_rows: skip}
tokenizer: {type: word, vocab_size: 60, vocab_limit: soft}
model:
  scale: {low: 0, high: 4}
  embedding: 16
  encoder: {type: embedding}
  cross: {units: 16}
evaluation: {metrics: [pearson, mse], production: null, robustness: {kinds: [upper_case]}}
""" + COMMON.format(epochs=6, more="batch_tokens: 256, max_length: 12, learning_rate: 0.01")


def captioning(folder: Path, draw: random.Random) -> str:
    scenes.generate(folder, rows=80)
    lines = (folder / "images/train/000003.png").read_bytes()[:200]
    (folder / "images/train/000003.png").write_bytes(lines)  # cut off
    return """
data:
  root: ROOT
  train: train.jsonl.gz
  eval: eval.jsonl.gz
  test: test.jsonl.gz
  columns: {image: image, caption: captions, boxes: boxes}
  bad_rows: skip
tokenizer: {vocab_size: 60, type: word}
model:
  image: {height: 32, width: 32}
  encoder: {channels: [8, 16, 16], units: 16}
  decoder: {type: bahdanau, units: 16, readout: tanh}
  embedding: 16
search: {type: greedy, max_length_factor: 0, max_length_offset: 12}
evaluation: {metrics: [bleu_1, chrf], production: null}
""" + COMMON.format(epochs=2, more="batch_tokens: 640, max_length: 20, learning_rate: 0.01")


def summarisation(folder: Path, draw: random.Random) -> str:
    rows = []
    for _ in range(200):
        words = [draw.choice(WORDS) for _ in range(8)]
        row = {"text": [" ".join(words[:4]), " ".join(words[4:])], "summary": [" ".join(words[:2])]}
        rows.append(json.dumps(row) + "\n")
    (folder / "texts.jsonl").write_text("".join(rows))
    return """
data: {root: ROOT, train: texts.jsonl, columns: {source: text, target: summary}}
tokenizer: {type: word, vocab_size: 40, vocab_limit: soft}
model:
  embedding: 16
  encoder: {type: recurrent, units: 8}
  decoder: {type: luong, units: 16, pointer_generator: true}
search: {type: greedy}
evaluation: {metrics: [rouge_1, rouge_l], production: null}
""" + COMMON.format(epochs=3, more="batch_tokens: 512, max_length: 20, penalties: {coverage: 0.1}")


def pointer(folder: Path, draw: random.Random) -> str:
    problem = dataclasses.replace(point_sets.SORTING, sizes=(3, 5), test_sizes=(3, 5))
    point_sets.generate(problem, folder, rows=3000)
    lines = (Path(__file__).parent / "quick-pointer.yaml").read_text().splitlines(keepends=True)
    body = [line for line in lines if not line.startswith(("#", "name:", "task:"))]
    return "".join(body).replace("${REGARD_HOME}/data/sorting", "ROOT")


def span(folder: Path, draw: random.Random) -> str:
    stories.generate(folder, rows=400)
    lines = gzip.decompress((folder / "train.jsonl.gz").read_bytes()).decode().splitlines()
    lines[6] = json.dumps({**json.loads(lines[6]), "answer_start": 1})
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    return """
data:
  root: ROOT
  train: train.jsonl
  eval: eval.jsonl.gz
  test: test.jsonl.gz
  extra: [facts]
  bad_rows: skip
tokenizer: {vocab_size: 120}
model:
  embedding: 16
  max_answer_tokens: 3
  encoder: {type: embedding}
  modelling: {type: transformer, layers: 1, heads: 2, feed_forward: 16}
  pointer: {units: 16, hops: 1}
evaluation:
  metrics: [squad_exact_match, squad_f1, supporting_attention]
  production: null
  slices: {by: [facts]}
  robustness: {kinds: [typing_errors], max_loss: {typing_errors: 50.0}}
""" + COMMON.format(epochs=2, more="batch_tokens: 2560, max_length: 80, learning_rate: 0.01")


CONFIGURATIONS: dict[str, Callable[[Path, random.Random], str]] = {
    "similarity": similarity,
    "captioning": captioning,
    "summarisation": summarisation,
    "pointer": pointer,
    "span": span,
}


def predict_arguments(row: dict, task: str, folder: Path) -> list[str]:
    """The arguments of ``regard predict`` for a row of the test split."""
    if task == "similarity":
        return [row["first"], row["second"]]
    if task == "span":
        return [row["passage"], row["question"]]
    if task == "captioning":
        return [str(folder / row["image"])]
    return [json.dumps(row["points"])] if task == "pointer" else [row["source"]]


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in TASKS if task != "translation"])
def test_from_files_to_a_prediction(task, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    body = CONFIGURATIONS[task](data, random.Random(1)).replace("ROOT", str(data))
    (tmp_path / "tiny.yaml").write_text(f"name: tiny\ntask: {task}\n{body}")
    shell = Shell(tmp_path)
    result = shell.run("run", "tiny.yaml", "--publish-anyway")  # trained for seconds
    assert result.returncode == 0, result.stdout + result.stderr
    assert (shell.home / "registry/tiny/1/assets.extra/contract.json").exists()
    (table,) = (shell.home / "pipelines/tiny/artifacts/Predictor").rglob("candidate.parquet")
    row = parquet.read_table(table).to_pylist()[0]
    picture = tmp_path / "attention.html"
    prediction = shell.run(
        "predict", "tiny", "--json", "--picture", str(picture), *predict_arguments(row, task, data)
    )
    assert prediction.returncode == 0, prediction.stderr
    assert picture.read_text(encoding="utf-8").startswith("<!doctype html>")
    (outputs,) = [json.loads(line) for line in prediction.stdout.splitlines()]
    output = outputs[OUTPUTS[task]]
    if isinstance(output, float):
        assert output == close_to(row["hypothesis"], roundings=1000)
    else:
        assert output == row["hypothesis"]
    metrics = json.loads(next(shell.home.rglob("metrics.json")).read_text())
    assert [entry["rows"] > 0 for entry in metrics["robustness"]] == [True] * (task in ROBUSTNESS)
    if task in WARNINGS:
        assert WARNINGS[task] in result.stdout


# Tasks whose test split is decoded with one kind of changed inputs.
ROBUSTNESS = ("similarity", "span")
OUTPUTS = {"similarity": "similarity", "captioning": "caption"}
OUTPUTS |= {"summarisation": "summary", "pointer": "positions", "span": "answer"}
# Warnings about rows that are not used.
WARNINGS = {"similarity": "score 9 is not from 0 to 4", "captioning": "000003.png is truncated"}
WARNINGS["span"] = "train.jsonl:7"
