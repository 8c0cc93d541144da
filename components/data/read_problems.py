"""What is wrong with the input, collected while it is read.

Beam passes on only the text of a worker's exception. So readers do not raise: they record a problem
with its location and continue, or end the file with ``UnreadableFile``. The caller makes one error
of all problems.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from regard.components.common.errors import UserError
from regard.components.common.formatting import format_count
from regard.components.settings.data import DataConfig

Kind = Literal["encoding", "nul", "row"]

MAX_EXAMPLES = 10
_KEYS = {"encoding": "encoding_errors", "nul": "encoding_errors", "row": "bad_rows"}
_NOUNS = {
    "encoding": ("line that is not UTF-8", "lines that are not UTF-8"),
    "nul": ("line with a NUL character", "lines with a NUL character"),
    "row": ("invalid row", "invalid rows"),
}
_VERBS = {"skip": "skipped", "replace": "repaired", "fail": "refused"}


@dataclass
class ReadProblem:
    """One problem; ``line`` counts from 1 and is None for the file as a whole."""

    file: str
    line: int | None
    text: str
    remedy: str | None = None

    @property
    def location(self) -> str:
        """The file, and the line if there is one: ``train.tsv:17``."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def as_user_error(self, suffix: str = "") -> UserError:
        """Return the problem as an error."""
        return UserError(self.text + suffix, self.location, self.remedy)


class UnreadableFile(Exception):
    """The rest of a file cannot be read, whatever the settings are."""

    def __init__(self, file: str, text: str, remedy: str, line: int | None = None):
        super().__init__(text)
        self.problem = ReadProblem(file, line, text, remedy)


@dataclass
class ReadProblems:
    """Counts of problems with the first examples, and the files that cannot be read.

    Attributes:
        counts: by kind and action, for example ``row/skip``. Kinds are ``encoding`` (not UTF-8),
            ``nul`` (a NUL character) and ``row`` (columns, JSON, missing or invalid values);
            actions are ``fail``, ``skip`` and ``replace``.
        examples: the first problems of each kind and action.
        unreadable: the files that cannot be read.
        rows: the number of all rows that were read.
        skipped_rows: the number of those that are not used.
        first_skipped: the problem of the first of them.
    """

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[ReadProblem]] = field(default_factory=dict)
    unreadable: list[ReadProblem] = field(default_factory=list)
    rows: int = 0
    skipped_rows: int = 0
    first_skipped: ReadProblem | None = None

    def add(self, kind: Kind, action: str, file: str, line: int, text: str) -> None:
        """Count a problem of a line."""
        key = f"{kind}/{action}"
        self.counts[key] = self.counts.get(key, 0) + 1
        examples = self.examples.setdefault(key, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(ReadProblem(file, line, text))
        # Lines are decoded a block at a time, before their values are checked.
        first = self.first_skipped
        if action == "skip" and (first is None or line < (first.line or 0)):
            self.first_skipped = ReadProblem(file, line, text)

    def merge(self, other: ReadProblems) -> None:
        """Add the problems of a later file."""
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
            examples = self.examples.setdefault(key, [])
            examples.extend(other.examples[key][: MAX_EXAMPLES - len(examples)])
        self.unreadable.extend(other.unreadable)
        self.rows += other.rows
        self.skipped_rows += other.skipped_rows
        self.first_skipped = self.first_skipped or other.first_skipped

    @property
    def is_fatal(self) -> bool:
        """Whether a file cannot be read, or a row has a problem whose action is ``fail``."""
        return bool(self.unreadable) or any(key.endswith("/fail") for key in self.counts)

    def total(self, action: str) -> int:
        """Return the number of problems with an action."""
        return sum(n for key, n in self.counts.items() if key.endswith(f"/{action}"))

    def notes(self) -> Iterable[str]:
        """Yield one sentence for each kind that was skipped or repaired."""
        for key, count in self.counts.items():
            kind, action = key.split("/")
            example = self.examples[key][0]
            first = "first " if count > 1 else ""
            noun = format_count(count, *_NOUNS[kind])
            yield f"{noun} {_VERBS[action]}; {first}{example.location}: {example.text}"

    def raise_if_unusable(self, config: DataConfig) -> None:
        """Raise the one error that all problems add up to.

        Raises:
            UserError: a problem is fatal, or more rows than ``bad_rows_limit`` are skipped.
        """
        if self.unreadable:
            more = format_count(len(self.unreadable) - 1, "more unreadable file")
            raise self.unreadable[0].as_user_error(f" ({more})" if self.unreadable[1:] else "")
        if fatal := next((key for key in self.counts if key.endswith("/fail")), None):
            key = _KEYS[fatal.split("/")[0]]
            choices = "skip or replace" if key == "encoding_errors" else "skip"
            example, count = self.examples[fatal][0], self.counts[fatal]
            example.remedy = f"Fix the file, or set `data.{key}` to {choices}."
            raise example.as_user_error(f" ({count:,} such lines in total)" if count > 1 else "")
        limit, first = config.bad_rows_limit, self.first_skipped
        # A quotient, not a product: 29 of 100 rows are not above a limit of 0.29.
        if first is None or self.skipped_rows / self.rows <= limit:
            return
        raise UserError(
            f"{self.skipped_rows:,} of {format_count(self.rows, 'row')} "
            f"({self.skipped_rows / self.rows:.2%}) would be skipped; the limit is {limit:.2%}. "
            f"First problem: {first.text}",
            first.location,
            "Fix the files or how they are read (`data.columns`, `data.images`), or raise "
            "`data.bad_rows_limit`.",
        )
