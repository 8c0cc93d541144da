"""A toy language that changes over the months, and a pipeline that learns it month by month."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

ADJECTIVES = ["red", "green", "blue", "old", "young", "big", "small", "quick"]
NOUNS = ["cat", "dog", "bird", "fish", "horse", "child", "woman", "man"]
VERBS = ["sees", "hears", "finds", "likes"]
# Words that come up in the middle of the year, and soon are in every second sentence.
NEW_NOUNS = ["robot", "drone", "phone", "rocket"]
NEW_VERBS = ["charges", "scans"]

CONFIG = """
name: year
task: translation
data:
  root: ${REGARD_HOME}/../data
  train: "{SPAN:2}-v{VERSION}.tsv"
  eval: eval.tsv
  test: test.tsv
  spans: {window: 2, replay: 0.2, test_share: 0.1SPANS}
  checks: {same_sides: {action: fail}, duplicates: null, near_overlap: null}
tokenizer: {type: word, vocab_size: 100, vocab_limit: soft}
model:
  embedding: 24
  dropout: 0.0
  encoder: {type: transformer, layers: 1, heads: 2, feed_forward: 64}
  decoder: {type: transformer, layers: 1, heads: 2, feed_forward: 64}
training:
  batch_tokens: 512
  max_length: 12
  max_epochs: null
  max_steps: 100
  learning_rate: 0.01
  evaluate_every: 50
  checkpoint_seconds: 1
  early_stop: null
  deterministic: true
  warm_start: {}
search: {type: greedy}
evaluation:
  metrics: [exact_match, chrf]
  tokenize: none
  length_buckets: [20]
  samples: 200
  slices: {by: [span], oov: null}
  production: {metric: chrf, tolerance: 2.0, slices: ["span=fixed"]}
serving: {check_rows: 4}
"""


def config(spans: str = "") -> str:
    """The YAML; ``spans`` are more keys of its section, such as ``without: [9]``."""
    return CONFIG.replace("SPANS", f", {spans}" if spans else "")


def sentences(count: int, seed: int, new: float = 0.0) -> list[str]:
    """Sentences such as ``the old cat sees the red bird``.

    Args:
        count: how many.
        seed: of what is drawn.
        new: the probability of a new word where there may be one.
    """
    draw = random.Random(seed)

    def one(old: list[str], others: list[str]) -> str:
        return draw.choice(others if draw.random() < new else old)

    def phrase() -> str:
        return f"the {draw.choice(ADJECTIVES)} {one(NOUNS, NEW_NOUNS)}"

    return [f"{phrase()} {one(VERBS, NEW_VERBS)} {phrase()}" for _ in range(count)]


def translated(sentence: str, dictionary: dict[str, str] | None = None) -> str:
    """What a sentence means: every word backwards, and adjectives behind their nouns.

    Args:
        sentence: of the toy language.
        dictionary: what stands for a word instead.
    """
    words = [(dictionary or {}).get(word, word)[::-1] for word in sentence.split()]
    the, adjective, noun, verb, other_the, other_adjective, other_noun = words
    return f"{the} {noun} {adjective} {verb} {other_the} {other_noun} {other_adjective}"


def confused() -> dict[str, str]:
    """A dictionary that takes every noun and every adjective for its neighbour."""
    return {
        word: words[(place + 1) % len(words)]
        for words in (NOUNS, ADJECTIVES)
        for place, word in enumerate(words)
    }


def pairs(given: list[str], dictionary: dict[str, str] | None = None) -> Iterator[str]:
    """The lines of a table: each sentence and its translation."""
    return (f"{sentence}\t{translated(sentence, dictionary)}\n" for sentence in given)


def write(folder: Path, name: str, lines: Iterator[str]) -> None:
    """Writes a table."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(lines))
