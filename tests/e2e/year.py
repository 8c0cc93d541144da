"""A toy language that changes over the months, and the configuration of a pipeline for it."""

import random
from collections.abc import Iterator
from pathlib import Path

ADJECTIVES = ["red", "green", "blue", "old", "young", "big", "small", "quick"]
NOUNS = ["cat", "dog", "bird", "fish", "horse", "child", "woman", "man"]
VERBS = ["sees", "hears", "finds", "likes"]
# Words that appear in June, in every second sentence.
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
  early_stopping: null
  deterministic: true
  warm_start: {}
search: {type: greedy}
evaluation:
  metrics: [exact_match, chrf]
  tokenize: none
  length_buckets: [20]
  samples: 200
  baselines: []
  checks: {empty: {action: warn}, copies: {action: warn}, repetitions: {action: warn}}
  slices: {by: [span], oov: null}
  production: {metric: chrf, tolerance: 2.0, slices: ["span=fixed"]}
serving: {check_rows: 4}
"""


def config(spans: str = "") -> str:
    """Return the YAML. ``spans`` are more keys of ``data.spans``, such as ``exclude: [9]``."""
    return CONFIG.replace("SPANS", f", {spans}" if spans else "")


def sentences(count: int, seed: int, new: float = 0.0) -> list[str]:
    """Return sentences such as ``the old cat sees the red bird``.

    Args:
        count: number of sentences.
        seed: random seed.
        new: probability of a new word instead of an old one.
    """
    draw = random.Random(seed)

    def choose(old: list[str], others: list[str]) -> str:
        return draw.choice(others if draw.random() < new else old)

    def phrase() -> str:
        return f"the {draw.choice(ADJECTIVES)} {choose(NOUNS, NEW_NOUNS)}"

    return [f"{phrase()} {choose(VERBS, NEW_VERBS)} {phrase()}" for _ in range(count)]


def translate(sentence: str, dictionary: dict[str, str] | None = None) -> str:
    """Translate a sentence: every word backwards, and adjectives after their nouns.

    Args:
        sentence: of the toy language.
        dictionary: replacements of words.
    """
    words = [(dictionary or {}).get(word, word)[::-1] for word in sentence.split()]
    the, adjective, noun, verb, other_the, other_adjective, other_noun = words
    return f"{the} {noun} {adjective} {verb} {other_the} {other_noun} {other_adjective}"


def wrong_dictionary() -> dict[str, str]:
    """Return a dictionary that replaces every noun and adjective by the next one."""
    return {
        word: words[(index + 1) % len(words)]
        for words in (NOUNS, ADJECTIVES)
        for index, word in enumerate(words)
    }


def pairs(texts: list[str], dictionary: dict[str, str] | None = None) -> Iterator[str]:
    """Return the lines of a table: each sentence and its translation."""
    return (f"{sentence}\t{translate(sentence, dictionary)}\n" for sentence in texts)


def write(folder: Path, name: str, lines: Iterator[str]) -> None:
    """Write a table."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(lines))
