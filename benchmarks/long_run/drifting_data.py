"""The pipeline of a long run, and data whose languages drift."""

from __future__ import annotations

import gzip
import itertools
import random
from collections import defaultdict
from pathlib import Path

NAME = "drifting"
ROWS = 600  # of a span
FIRST_ROWS = 6000  # of the first one, whose model must be better than a copy of the input
_EVALUATION_ROWS = 300
# Share of the rows of a span that have its own language; the others have all languages.
_OWN_LANGUAGE = 0.5
_LANGUAGE = 3  # the column

CONFIG = f"""
name: {NAME}
task: translation
data:
  root: ${{REGARD_HOME}}/data
  train: "span-{{SPAN:4}}.tsv"
  eval: eval.tsv.gz
  test: test.tsv.gz
  extra: [kind, locale, links]
  spans: {{window: 4, replay: 0.2}}
  checks: {{target_overlap: {{limit: 0.5}}}}
tokenizer: {{type: char, vocab_size: 400, shared: false}}
model:
  embedding: 32
  encoder: {{type: recurrent, cell: lstm, units: 96, layers: 1, bidirectional: true}}
  decoder: {{type: luong, cell: lstm, units: 96, layers: 1, input_feeding: true}}
  attention: {{score: general, alignment: soft}}
training:
  warm_start: {{}}
  batch_tokens: 2048
  max_length: 80
  max_epochs: null
  max_steps: 250
  learning_rate: 0.004
  schedule: {{type: cosine, warmup_steps: 10}}
  evaluate_every: 125
  validation_rows: 100
search: {{type: greedy, max_length_factor: 1.0, max_length_offset: 15}}
evaluation: {{metrics: [chrf, exact_match], tokenize: none}}
schedule:
  every: 30s
  new_span: true
  backoff: 1m
  keep: 5
  keep_versions: 3
"""


def write_pipeline(folder: Path, home: Path) -> Path:
    """Write the configuration and the fixed splits, and return the configuration's file.

    Args:
        folder: the folder of the measurement.
        home: the value of REGARD_HOME, with the data of the quickstart.
    """
    (home / "data").mkdir(parents=True, exist_ok=True)
    for split in ("eval", "test"):
        name = f"{split}.tsv.gz"
        with gzip.open(home / "data/quickstart" / name, "rt", encoding="utf-8") as file:
            lines = list(itertools.islice(file, _EVALUATION_ROWS))
        with gzip.open(home / "data" / name, "wt", encoding="utf-8") as file:
            file.writelines(lines)
    path = folder / "pipeline.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def write_span(home: Path, number: int) -> None:
    """Write a span atomically; its language is one of all in turn.

    Args:
        home: the value of REGARD_HOME, with the data of the quickstart.
        number: the number of the span, from 1.
    """
    rows_by_language = defaultdict(list)
    with gzip.open(home / "data/quickstart/train.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            rows_by_language[line.split("\t")[_LANGUAGE]].append(line)
    languages = sorted(rows_by_language)
    draw = random.Random(number)
    own = rows_by_language[languages[number % len(languages)]]
    count = FIRST_ROWS if number == 1 else ROWS
    rows = draw.choices(own, k=int(count * _OWN_LANGUAGE))
    every = [line for lines in rows_by_language.values() for line in lines]
    rows += draw.choices(every, k=count - len(rows))
    draw.shuffle(rows)
    temporary = home / "data" / "next-span"
    temporary.write_text("".join(rows), encoding="utf-8")
    temporary.rename(home / "data" / f"span-{number:04}.tsv")


def read_sentences(home: Path) -> list[str]:
    """Return the sources of the test split."""
    with gzip.open(home / "data/quickstart/test.tsv.gz", "rt", encoding="utf-8") as file:
        return [line.split("\t")[0] for line in file]
