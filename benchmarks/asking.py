"""How fast something answers: all texts in batches, and one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

Answering = Callable[[Sequence[str]], list[str]]


def measure(answer: Answering, texts: Sequence[str], passes: int, single: int) -> dict[str, Any]:
    """Asks for everything, and then for some texts alone.

    Args:
        answer: gives the answers to any number of texts.
        texts: what is asked.
        passes: how often all of them; a first pass of a tenth is not counted.
        single: how many of them alone, evenly drawn.

    Returns:
        ``seconds`` of each pass, ``answers``, and ``latencies`` in seconds.
    """
    answer(texts[:: max(1, len(texts) // 100)])
    seconds = []
    for _ in range(passes):
        began = time.perf_counter()
        answers = answer(texts)
        seconds.append(time.perf_counter() - began)
    alone = texts[:: max(1, len(texts) // single)][:single] if single else []
    latencies, same = [], 0
    for text in [*alone[:3], *alone]:
        began = time.perf_counter()
        found = answer([text])
        latencies.append(time.perf_counter() - began)
        same += found[0] == answers[texts.index(text)]
    return {
        "seconds": seconds,
        "answers": answers,
        "latencies": latencies[len(latencies) - len(alone) :],
        "same_alone": same / max(1, len(latencies)),
    }


def in_batches(answer: Answering, size: int) -> Answering:
    """Answers so many at once, in the order in which they stand."""

    def answers(texts: Sequence[str]) -> list[str]:
        parts = [texts[first : first + size] for first in range(0, len(texts), size)]
        return [text for part in parts for text in answer(part)]

    return answers
