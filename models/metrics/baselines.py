"""Answers that take no model: what a score is worth shows beside theirs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

# A sentence ends with its line; within a line behind such a sign, where white space and something
# that can begin a sentence follow. Of scripts that write no spaces the sign alone is enough.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])|(?<=[。！？])")


@dataclass(frozen=True)
class Baseline:
    """One way to answer.

    Attributes:
        label: how people write it.
        answer: from an input text to an answer.
    """

    label: str
    answer: Callable[[str], str]


def lead(text: str, count: int) -> str:
    """The first sentences of a text, the usual baseline of summaries (See et al. 2017, §6.1)."""
    return " ".join(sentences(text)[:count])


def sentences(text: str) -> list[str]:
    """The sentences of a text: its lines where it has several, else told by their signs."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        return lines
    parts, start = [], 0
    for end in _END.finditer(lines[0]):
        parts.append(lines[0][start : end.end()].strip())
        start = end.end()
    return [part for part in (*parts, lines[0][start:].strip()) if part]


BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {
        "lead_1": Baseline("lead-1", functools.partial(lead, count=1)),
        "lead_3": Baseline("lead-3", functools.partial(lead, count=3)),
        "copy": Baseline("copy", lambda text: text),
    }
)
