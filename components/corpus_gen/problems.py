"""What is wrong with the input: collected while reading, told once at the end.

Beam hands an exception of a worker on as text only, so readers do not raise: they note a problem
with its place and go on, or end the file with ``Broken``. The executor makes one error of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from components.errors import UserError
from components.words import counted

SHOWN = 10
_SET = {"encoding": "encoding_errors", "nul": "encoding_errors", "row": "bad_rows"}
_CALLED = {
    "encoding": ("line is not UTF-8", "lines are not UTF-8"),
    "nul": ("line holds a NUL", "lines hold a NUL"),
    "row": ("bad row", "bad rows"),
}
_DONE = {"skip": "skipped", "replace": "repaired", "fail": "refused"}


@dataclass
class Problem:
    """One example of a kind of problem; ``line`` is from 1, None for the file as a whole."""

    file: str
    line: int | None
    text: str
    remedy: str | None = None

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Broken(Exception):
    """A file that cannot be read on, whatever the settings say."""

    def __init__(self, file: str, text: str, remedy: str, line: int | None = None):
        super().__init__(text)
        self.problem = Problem(file, line, text, remedy)


@dataclass
class Problems:
    """Counts of problems by kind and action, the first examples of each, and broken files.

    Kinds are ``encoding`` (not UTF-8), ``nul`` (a NUL character) and ``row`` (columns, JSON,
    missing values, values that cannot be used); actions are ``fail``, ``skip`` and ``replace``.
    ``rows`` are all that were read and ``left_out`` those of them that are not used; ``first`` is
    what was wrong with the first one that was skipped.
    """

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Problem]] = field(default_factory=dict)
    broken: list[Problem] = field(default_factory=list)
    rows: int = 0
    left_out: int = 0
    first: Problem | None = None

    def add(self, kind: str, action: str, file: str, line: int, text: str) -> None:
        """Counts one problem of a line, and keeps it if it is among the first."""
        key = f"{kind}/{action}"
        self.counts[key] = self.counts.get(key, 0) + 1
        kept = self.examples.setdefault(key, [])
        if len(kept) < SHOWN:
            kept.append(Problem(file, line, text))
        # Lines are decoded a block at a time, before their values are looked at.
        if action == "skip" and (self.first is None or line < (self.first.line or 0)):
            self.first = Problem(file, line, text)

    def merge(self, other: Problems) -> None:
        """Adds the problems of a later file."""
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
            kept = self.examples.setdefault(key, [])
            kept.extend(other.examples[key][: SHOWN - len(kept)])
        self.broken.extend(other.broken)
        self.rows += other.rows
        self.left_out += other.left_out
        self.first = self.first or other.first

    @property
    def fatal(self) -> bool:
        """Whether the corpus cannot be used as it is."""
        return bool(self.broken) or any(key.endswith("/fail") for key in self.counts)

    def total(self, action: str) -> int:
        """How many lines were met with ``skip``, ``replace`` or ``fail``."""
        return sum(n for key, n in self.counts.items() if key.endswith(f"/{action}"))

    def notes(self) -> Iterable[str]:
        """One sentence for each kind that was skipped or repaired."""
        for key, count in self.counts.items():
            kind, action = key.split("/")
            first = self.examples[key][0]
            told = f"{counted(count, *_CALLED[kind])} ({_DONE[action]})"
            yield f"{told}; {'first ' if count > 1 else ''}{first.place}: {first.text}"

    def refuse(self, limit: float) -> None:
        """Ends the run where the corpus cannot be used, or too much of it was skipped.

        Args:
            limit: the share of the rows, 0..1, that may be left out.

        Raises:
            UserError: names the first problem and counts the others.
        """
        if self.fatal:
            raise self.error()
        # Divided and not multiplied: 29 of 100 rows are not more than a limit of 0.29.
        if self.first is None or self.left_out / self.rows <= limit:
            return
        raise UserError(
            f"{self.left_out:,} of {counted(self.rows, 'row')} "
            f"({self.left_out / self.rows:.2%}) would be left out; the limit is {limit:.2%}; "
            f"the first: {self.first.text}",
            self.first.place,
            "Mend the files and what reads them (`data.columns`, `data.images`), or raise "
            "`data.bad_rows_limit`.",
        )

    def error(self) -> UserError:
        """The one error that names the first fatal problem and counts the others."""
        if self.broken:
            first = self.broken[0]
            more = len(self.broken) - 1
            told = f" ({more:,} more broken files)" if more else ""
            return UserError(first.text + told, first.place, first.remedy)
        key = next(key for key in self.counts if key.endswith("/fail"))
        kind = key.split("/")[0]
        first, count = self.examples[key][0], self.counts[key]
        told = f" ({count:,} such lines in all)" if count > 1 else ""
        choices = "skip or replace" if _SET[kind] == "encoding_errors" else "skip"
        remedy = f"Mend the file, or set `data.{_SET[kind]}` to {choices}."
        return UserError(first.text + told, first.place, remedy)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Problems:
        """What ``to_json`` gave."""
        return cls(
            dict(content["counts"]),
            {key: [Problem(**p) for p in kept] for key, kept in content["examples"].items()},
            [Problem(**p) for p in content["broken"]],
            content["rows"],
            content["left_out"],
            Problem(**content["first"]) if content["first"] else None,
        )
