"""Finds degenerate outputs that metrics hide: empty, copied, repetitive, in another script.

Only texts are checked. Each check counts rows and keeps the worst ones.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from regard.components.data.text_analysis import count_scripts, script_name
from regard.components.evaluator.results import DegenerateCheck, DegenerateExample
from regard.components.settings.evaluation import OutputChecksConfig
from regard.core.characters import is_blank
from regard.core.formatting import format_count
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
class OutputRow:
    """An output to check.

    Attributes:
        hypothesis: the output.
        references: the references.
        source: the input text; empty if the model has none.
        usual_scripts: the scripts of all references, without rare ones.
        max_ratio: the maximum ratio of the lengths of output and reference.
    """

    hypothesis: str
    references: Sequence[str]
    source: str
    usual_scripts: Set[str]
    max_ratio: float


# How bad a degenerate output is, and what is wrong if the check's label does not say it all.
Degeneration = tuple[float, str]


def check_empty(row: OutputRow) -> Degeneration | None:
    """Find an empty output where no reference is empty."""
    if not is_blank(row.hypothesis) or any(map(is_blank, row.references)):
        return None
    return float(len(row.references[0])), ""


def check_copy(row: OutputRow) -> Degeneration | None:
    """Find an output that repeats the source where no reference does."""
    text = _normalize(row.source)
    is_copy = text and _normalize(row.hypothesis) == text
    if not is_copy or text in map(_normalize, row.references):
        return None
    return float(len(text)), ""


def check_repetition(row: OutputRow) -> Degeneration | None:
    """Find an output that repeats a phrase in a row, more often than any reference."""
    times, phrase = longest_repetition(row.hypothesis)
    if times < _MIN_PHRASE_TIMES:
        return None
    if times <= max(longest_repetition(reference)[0] for reference in row.references):
        return None
    return float(times), f"“{phrase}” {format_count(times, 'time')} in a row"


def check_length(row: OutputRow) -> Degeneration | None:
    """Find an output much longer or shorter than every reference, but not an empty one."""
    length, lengths = len(row.hypothesis.strip()), [len(text.strip()) for text in row.references]
    if is_blank(row.hypothesis) or max(length, *lengths) < _MIN_RATIO_CHARACTERS:
        return None
    ratio = min(max(length, other) / max(min(length, other), 1) for other in lengths)
    if ratio <= row.max_ratio:
        return None
    direction = "longer" if length > min(lengths) else "shorter"
    return ratio, f"{ratio:.1f} times {direction} than the reference"


def check_script(row: OutputRow) -> Degeneration | None:
    """Find an output in scripts that neither the references nor the source use."""
    letters = count_scripts(row.hypothesis)
    unexpected = set(letters) - row.usual_scripts
    if unexpected:
        unexpected -= set().union(*map(count_scripts, (row.source, *row.references)))
    share = sum(letters[code] for code in unexpected) / max(sum(letters.values()), 1)
    if share <= _MAX_UNEXPECTED_SHARE:
        return None
    names = ", ".join(script_name(code) for code in letters if code in unexpected)
    return share, f"{share:.0%} of its letters are {names}"


# By the check's key in ``evaluation.checks``: the label that completes "the outputs are", and the
# check.
CHECKS: Mapping[str, tuple[str, Callable[[OutputRow], Degeneration | None]]] = {
    "empty": ("empty", check_empty),
    "copies": ("copies of the source", check_copy),
    "repetitions": ("repetitive", check_repetition),
    "length_ratio": ("of unusual length", check_length),
    "script": ("in an unexpected script", check_script),
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
    count, usual = len(rows.hypotheses), _usual_scripts(rows)
    texts = zip(rows.hypotheses, rows.references, sources or [""] * count, strict=True)
    outputs = [
        OutputRow(hypothesis, references, source, usual, config.length_ratio.ratio)
        for hypothesis, references, source in texts
    ]
    results = {}
    for name, (label, check) in CHECKS.items():
        if sources is None and name == "copies":
            continue
        cases: dict[int, Degeneration] = {}
        for number, row in enumerate(outputs):
            case = check(row)
            if case is not None:
                cases[number] = case
        worst = sorted(cases, key=lambda number: (-cases[number][0], number))[:_MAX_EXAMPLES]
        results[name] = DegenerateCheck(
            label=label,
            rows=len(cases),
            share=len(cases) / count,
            limit=getattr(config, name).limit,
            action=getattr(config, name).action,
            examples=[
                DegenerateExample(
                    row=number,
                    source=None if sources is None else sources[number],
                    hypothesis=rows.hypotheses[number],
                    reference=rows.references[number][0],
                    description=cases[number][1],
                )
                for number in worst
            ],
        )
    return results


def _usual_scripts(rows: Rows) -> set[str]:
    """Return the scripts of all references, without rare ones."""
    counts: Counter[str] = Counter()
    for references in rows.references:
        for reference in references:
            counts += count_scripts(reference)
    min_count = _MIN_SCRIPT_SHARE * sum(counts.values())
    return {code for code, count in counts.items() if count >= min_count}


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
