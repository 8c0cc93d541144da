"""Baselines without a model, which a model must beat to be of use."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.core.features import Kind
from regard.core.kinds import NUMBER, POSITIONS, TEXT
from regard.models.metrics.base import Rows
from regard.models.metrics.geometry import POINTS

# The end of a sentence: a line break, or a sign followed by white space and a possible sentence
# start. In scripts without spaces the sign is enough.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])|(?<=[。！？])")


Predict = Callable[[Rows, Sequence[str]], Sequence[Any]]
_SEED = 0


@dataclass(frozen=True)
class Baseline:
    """Outputs without a model.

    Attributes:
        label: the display name, a noun phrase.
        predict: returns the output of each row, from the rows and their input texts.
        output_kinds: the kinds of outputs that it has.
        reads_text: whether it needs input texts; otherwise they may be empty.
    """

    label: str
    predict: Predict
    output_kinds: tuple[Kind, ...] = (TEXT,)
    reads_text: bool = True


def lead(text: str, count: int) -> str:
    """Return the first sentences, the usual baseline for summaries (See et al. 2017, §6.1)."""
    return " ".join(sentences(text)[:count])


def sentences(text: str) -> list[str]:
    """Split a text into sentences: by lines if there are several, otherwise by punctuation."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        return lines
    parts, start = [], 0
    for end in _END.finditer(lines[0]):
        parts.append(lines[0][start : end.end()].strip())
        start = end.end()
    return [part for part in (*parts, lines[0][start:].strip()) if part]


def copy(rows: Rows, sources: Sequence[str]) -> Sequence[str]:
    """Return the inputs."""
    return sources


def most_frequent(rows: Rows, sources: Sequence[str]) -> Sequence[str]:
    """Return the most frequent reference, for every row."""
    counts = Counter(reference for references in rows.references for reference in references)
    return [counts.most_common(1)[0][0]] * len(rows.references)


def chance(rows: Rows, sources: Sequence[str]) -> Sequence[Any]:
    """Return outputs drawn at random, with a fixed seed.

    For texts and numbers these are the references of other rows, and for positions as many points
    of the row as its reference has.
    """
    generator = random.Random(_SEED)
    first = [references[0] for references in rows.references]
    if not rows.output_kind.selects_points:
        return generator.sample(first, len(first))
    samples = []
    for points, positions in zip(rows.columns[POINTS], first, strict=True):
        count = min(len(positions), len(points))
        samples.append(generator.sample(range(len(points)), count))
    return samples


def _first_sentences(count: int) -> Predict:
    return lambda rows, sources: [lead(text, count) for text in sources]


BASELINES: dict[str, Baseline] = {
    "lead_1": Baseline("lead-1", _first_sentences(1)),
    "lead_3": Baseline("lead-3", _first_sentences(3)),
    "copy": Baseline("copy of the input", copy),
    "most_frequent": Baseline("most frequent reference", most_frequent, reads_text=False),
    "chance": Baseline("chance", chance, (TEXT, NUMBER, POSITIONS), reads_text=False),
}
