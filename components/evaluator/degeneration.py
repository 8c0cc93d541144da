"""Answers that are wrong in ways that metrics hide: empty, copied, looping, in strange letters.

Only texts are looked at. Each check counts rows, and keeps the worst of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.scripts import name as script_name
from components.scripts import scripts
from components.words import counted
from models.metrics import Rows

SHOWN = 5
# A phrase of so many words three times in a row, or of so many letters of a word four times: "ha ha
# ha" is a loop, the German "Schifffahrt" none.
_MOST_WORDS, _TIMES = 8, 3
_MOST_LETTERS, _LETTER_TIMES = 12, 4
# Letters of a script that hardly any reference has are strange.
_USUAL, _STRANGE = 0.001, 0.3
_SHORT = 10  # characters; of less the ratio says nothing


@dataclass(frozen=True)
class Fault:
    """What is wrong with one answer.

    Attributes:
        row: its place in the split.
        degree: how bad it is; the worst are shown.
        told: what is wrong, in words; empty where the check's name says it.
    """

    row: int
    degree: float
    told: str = ""


Check = Callable[[Rows, Sequence[str], Mapping[str, Any]], list[Fault]]


def empty(rows: Rows, sources: Sequence[str], options: Mapping[str, Any]) -> list[Fault]:
    """Nothing was written where something should be."""
    return [
        Fault(row, float(len(wanted[0])))
        for row, (got, wanted) in enumerate(zip(rows.hypotheses, rows.references, strict=True))
        if not got.strip() and all(one.strip() for one in wanted)
    ]


def copies(rows: Rows, sources: Sequence[str], options: Mapping[str, Any]) -> list[Fault]:
    """The source was written once more, and no reference does so."""
    found = []
    for row, (got, source) in enumerate(zip(rows.hypotheses, sources, strict=True)):
        same = _plain(source)
        if same and _plain(got) == same and same not in map(_plain, rows.references[row]):
            found.append(Fault(row, float(len(same))))
    return found


def loops(rows: Rows, sources: Sequence[str], options: Mapping[str, Any]) -> list[Fault]:
    """A phrase stands there again and again, more often than in a reference."""
    found = []
    for row, (got, wanted) in enumerate(zip(rows.hypotheses, rows.references, strict=True)):
        times, phrase = repeated(got)
        if times >= _TIMES and times > max(repeated(one)[0] for one in wanted):
            found.append(Fault(row, float(times), f"“{phrase}” {counted(times, 'time')} in a row"))
    return found


def length_ratio(rows: Rows, sources: Sequence[str], options: Mapping[str, Any]) -> list[Fault]:
    """The answer is much longer or shorter than every reference; empty ones are told elsewhere."""
    found = []
    for row, (got, wanted) in enumerate(zip(rows.hypotheses, rows.references, strict=True)):
        length, lengths = len(got.strip()), [len(one.strip()) for one in wanted]
        if not length or max(length, *lengths) < _SHORT:
            continue
        ratio = min(max(length, other) / max(min(length, other), 1) for other in lengths)
        if ratio > options["ratio"]:
            how = "longer" if length > min(lengths) else "shorter"
            found.append(Fault(row, ratio, f"{ratio:.1f} times {how} than the reference"))
    return found


def script(rows: Rows, sources: Sequence[str], options: Mapping[str, Any]) -> list[Fault]:
    """The answer is written in letters that the references do not use, nor its source."""
    used: Counter[str] = Counter()
    for wanted in rows.references:
        for one in wanted:
            used += scripts(one)
    least = _USUAL * sum(used.values())
    usual = {code for code, count in used.items() if count >= least}
    found = []
    for row, got in enumerate(rows.hypotheses):
        letters = scripts(got)
        strange = {
            code: count
            for code, count in letters.items()
            if code not in usual
            and not any(code in scripts(text) for text in (sources[row], *rows.references[row]))
        }
        share = sum(strange.values()) / max(sum(letters.values()), 1)
        if share > _STRANGE:
            names = ", ".join(script_name(code) for code in strange)
            found.append(Fault(row, share, f"{share:.0%} of its letters are {names}"))
    return found


CHECKS: Mapping[str, Check] = {
    "empty": empty,
    "copies": copies,
    "loops": loops,
    "length_ratio": length_ratio,
    "script": script,
}
_LABELS = {
    "empty": "empty",
    "copies": "copies of the source",
    "loops": "loops",
    "length_ratio": "of a strange length",
    "script": "in a strange script",
}


def examine(
    rows: Rows, sources: Sequence[str] | None, config: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What the checks find.

    Args:
        rows: the answers, which must be texts, and the references.
        sources: the text that each was asked; None where the model was asked no text.
        config: the section ``evaluation.checks``: of each check its ``limit``, ``action`` and
            options.

    Returns:
        For each check its ``label``, the ``rows`` found, their ``share``, the ``limit`` and
        ``action``, and ``examples``: the worst rows, each with what it was asked, the
        ``hypothesis``, the ``reference``, and what is wrong (``told``).
    """
    found = {}
    for name, check in CHECKS.items():
        if name not in config or (sources is None and name == "copies"):
            continue
        faults = check(rows, sources or [""] * len(rows.hypotheses), config[name])
        worst = sorted(faults, key=lambda fault: (-fault.degree, fault.row))[:SHOWN]
        found[name] = {
            "label": _LABELS[name],
            "rows": len(faults),
            "share": len(faults) / len(rows.hypotheses),
            "limit": config[name]["limit"],
            "action": config[name]["action"],
            "examples": [
                {
                    "row": fault.row,
                    "source": None if sources is None else sources[fault.row],
                    "hypothesis": rows.hypotheses[fault.row],
                    "reference": rows.references[fault.row][0],
                    "told": fault.told,
                }
                for fault in worst
            ],
        }
    return found


def repeated(text: str) -> tuple[int, str]:
    """How often a phrase of a few words stands at most in a row, and which.

    Within a long word, or where there are no spaces, it is a phrase of letters. Digits alone are no
    phrase: numbers have their zeros.
    """
    words = text.split()
    best = _longest_run(words, _MOST_WORDS, _TIMES)
    for word in words:
        times, letters = _longest_run(list(word), _MOST_LETTERS, _LETTER_TIMES)
        if times > best[0]:
            best = (times, letters.replace(" ", ""))
    return best


def _longest_run(parts: Sequence[str], most: int, least: int) -> tuple[int, str]:
    """The phrase of at most so many parts that stands most often in a row; none below ``least``."""
    best = (1, "")
    for length in range(1, min(most, len(parts) // least) + 1):
        run = 0  # parts that equal the one a phrase before them
        for at in range(length, len(parts)):
            run = run + 1 if parts[at] == parts[at - length] else 0
            times = run // length + 1
            if times >= least and times > best[0]:
                phrase = " ".join(parts[at - length + 1 : at + 1])
                if any(letter.isalpha() for letter in phrase):
                    best = (times, phrase)
    return best


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()
