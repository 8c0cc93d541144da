"""Finds degenerate outputs that metrics hide: empty, copied, repetitive, in another script.

Only texts are checked. Each check counts rows and keeps the worst ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from regard.components.common.formatting import format_count
from regard.components.data.text_analysis import count_scripts, script_name
from regard.components.evaluator.results import DegenerateCheck, DegenerateExample
from regard.components.settings.evaluation import OutputChecksConfig
from regard.models.metrics import Rows

_MAX_EXAMPLES = 5
# A phrase of at most 8 words three times in a row, or of at most 12 letters of a word four times:
# "ha ha ha" is a repetition, the German "Schifffahrt" is not.
_MAX_PHRASE_WORDS, _MIN_PHRASE_TIMES = 8, 3
_MAX_PHRASE_LETTERS, _MIN_LETTER_TIMES = 12, 4
# A script is unexpected if almost no reference uses it.
_MIN_SCRIPT_SHARE, _MAX_UNEXPECTED_SHARE = 0.001, 0.3
_MIN_RATIO_CHARACTERS = 10  # the length ratio of shorter texts says nothing


@dataclass(frozen=True)
class DegenerateRow:
    """A degenerate output.

    Attributes:
        row: the index of the row.
        severity: how bad it is; the worst rows are shown.
        description: what is wrong; empty if the check's label says it all.
    """

    row: int
    severity: float
    description: str = ""


Check = Callable[[Rows, Sequence[str], OutputChecksConfig], list[DegenerateRow]]


def find_empty(
    rows: Rows, sources: Sequence[str], config: OutputChecksConfig
) -> list[DegenerateRow]:
    """Find empty outputs where no reference is empty."""
    pairs = zip(rows.hypotheses, rows.references, strict=True)
    return [
        DegenerateRow(row, float(len(references[0])))
        for row, (hypothesis, references) in enumerate(pairs)
        if not hypothesis.strip() and all(reference.strip() for reference in references)
    ]


def find_copies(
    rows: Rows, sources: Sequence[str], config: OutputChecksConfig
) -> list[DegenerateRow]:
    """Find outputs that repeat the source where no reference does."""
    copies = []
    for row, (hypothesis, source) in enumerate(zip(rows.hypotheses, sources, strict=True)):
        text = _normalize(source)
        is_copy = text and _normalize(hypothesis) == text
        if is_copy and text not in map(_normalize, rows.references[row]):
            copies.append(DegenerateRow(row, float(len(text))))
    return copies


def find_repetitions(
    rows: Rows, sources: Sequence[str], config: OutputChecksConfig
) -> list[DegenerateRow]:
    """Find outputs that repeat a phrase in a row, more often than any reference."""
    repetitive = []
    pairs = zip(rows.hypotheses, rows.references, strict=True)
    for row, (hypothesis, references) in enumerate(pairs):
        times, phrase = longest_repetition(hypothesis)
        if times < _MIN_PHRASE_TIMES:
            continue
        if times > max(longest_repetition(reference)[0] for reference in references):
            text = f"“{phrase}” {format_count(times, 'time')} in a row"
            repetitive.append(DegenerateRow(row, float(times), text))
    return repetitive


def find_unusual_lengths(
    rows: Rows, sources: Sequence[str], config: OutputChecksConfig
) -> list[DegenerateRow]:
    """Find outputs that are much longer or shorter than every reference; empty ones excluded."""
    unusual = []
    pairs = zip(rows.hypotheses, rows.references, strict=True)
    for row, (hypothesis, references) in enumerate(pairs):
        length, lengths = len(hypothesis.strip()), [len(text.strip()) for text in references]
        if not length or max(length, *lengths) < _MIN_RATIO_CHARACTERS:
            continue
        ratio = min(max(length, other) / max(min(length, other), 1) for other in lengths)
        if ratio > config.length_ratio.ratio:
            direction = "longer" if length > min(lengths) else "shorter"
            text = f"{ratio:.1f} times {direction} than the reference"
            unusual.append(DegenerateRow(row, ratio, text))
    return unusual


def find_unexpected_scripts(
    rows: Rows, sources: Sequence[str], config: OutputChecksConfig
) -> list[DegenerateRow]:
    """Find outputs in scripts that neither the references nor the source use."""
    counts: Counter[str] = Counter()
    for references in rows.references:
        for reference in references:
            counts += count_scripts(reference)
    min_count = _MIN_SCRIPT_SHARE * sum(counts.values())
    usual = {code for code, count in counts.items() if count >= min_count}
    unexpected_rows = []
    for row, hypothesis in enumerate(rows.hypotheses):
        letters = count_scripts(hypothesis)
        unexpected = {
            code: count
            for code, count in letters.items()
            if code not in usual
            and not any(
                code in count_scripts(text) for text in (sources[row], *rows.references[row])
            )
        }
        share = sum(unexpected.values()) / max(sum(letters.values()), 1)
        if share > _MAX_UNEXPECTED_SHARE:
            names = ", ".join(script_name(code) for code in unexpected)
            text = f"{share:.0%} of its letters are {names}"
            unexpected_rows.append(DegenerateRow(row, share, text))
    return unexpected_rows


# By the check's key in ``evaluation.checks``: the label that completes "the outputs are", and the
# check.
CHECKS: Mapping[str, tuple[str, Check]] = {
    "empty": ("empty", find_empty),
    "copies": ("copies of the source", find_copies),
    "repetitions": ("repetitive", find_repetitions),
    "length_ratio": ("of unusual length", find_unusual_lengths),
    "script": ("in an unexpected script", find_unexpected_scripts),
}


def find_degenerate_outputs(
    rows: Rows, sources: Sequence[str] | None, config: OutputChecksConfig
) -> dict[str, DegenerateCheck]:
    """Run all checks.

    Args:
        rows: the outputs, which must be texts, and the references.
        sources: the input text of each row; None if the model has no text input.
        config: the section ``evaluation.checks``.
    """
    results = {}
    for name, (label, check) in CHECKS.items():
        if sources is None and name == "copies":
            continue
        degenerate = check(rows, sources or [""] * len(rows.hypotheses), config)
        worst = sorted(degenerate, key=lambda one: (-one.severity, one.row))[:_MAX_EXAMPLES]
        results[name] = DegenerateCheck(
            label=label,
            rows=len(degenerate),
            share=len(degenerate) / len(rows.hypotheses),
            limit=getattr(config, name).limit,
            action=getattr(config, name).action,
            examples=[
                DegenerateExample(
                    row=one.row,
                    source=None if sources is None else sources[one.row],
                    hypothesis=rows.hypotheses[one.row],
                    reference=rows.references[one.row][0],
                    description=one.description,
                )
                for one in worst
            ],
        )
    return results


def longest_repetition(text: str) -> tuple[int, str]:
    """Return how often a phrase of a few words occurs in a row at most, and the phrase.

    Within a long word, or without spaces, a phrase consists of letters. Digits alone do not count
    as a phrase, because numbers repeat zeros.
    """
    words = text.split()
    best = _longest_run(words, _MAX_PHRASE_WORDS, _MIN_PHRASE_TIMES)
    for word in words:
        times, letters = _longest_run(list(word), _MAX_PHRASE_LETTERS, _MIN_LETTER_TIMES)
        if times > best[0]:
            best = (times, letters.replace(" ", ""))
    return best


def _longest_run(parts: Sequence[str], max_length: int, min_times: int) -> tuple[int, str]:
    """Return the phrase of at most ``max_length`` parts with the longest run of repetitions."""
    best = (1, "")
    for length in range(1, min(max_length, len(parts) // min_times) + 1):
        run = 0  # parts that equal the one a phrase before them
        for index in range(length, len(parts)):
            run = run + 1 if parts[index] == parts[index - length] else 0
            times = run // length + 1
            if times >= min_times and times > best[0]:
                phrase = " ".join(parts[index - length + 1 : index + 1])
                if any(letter.isalpha() for letter in phrase):
                    best = (times, phrase)
    return best


def _normalize(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()
