"""Baselines that need no model, as a yardstick for the scores of summaries and corrections."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

# The end of a sentence: a line break, or a sign followed by white space and a possible sentence
# start. In scripts without spaces the sign is enough.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])|(?<=[。！？])")


@dataclass(frozen=True)
class Baseline:
    """A rule that turns an input text into an output.

    Attributes:
        label: the display name.
        predict: returns the output for an input text.
    """

    label: str
    predict: Callable[[str], str]


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


BASELINES: dict[str, Baseline] = {
    "lead_1": Baseline("lead-1", functools.partial(lead, count=1)),
    "lead_3": Baseline("lead-3", functools.partial(lead, count=3)),
    "copy": Baseline("copy", lambda text: text),
}
