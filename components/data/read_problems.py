"""What is wrong with the input, collected while it is read.

Beam passes on only the text of a worker's exception. So readers do not raise: they record a problem
with its location and continue, or end the file with ``UnreadableFile``. The caller makes one error
of all problems.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from regard.components.data.layouts import Layout, merge_layouts
from regard.components.data.unreadable_file import ReadProblem
from regard.components.settings.data import DataConfig
from regard.core.errors import DataError
from regard.core.formatting import format_count

MAX_EXAMPLES = 10
_MAX_LAYOUTS = 5  # that are listed


@dataclass
class ReadProblems:
    """The unused rows of files with the first examples, and the files that cannot be read.

    Attributes:
        examples: the first invalid lines and rows: not UTF-8, a NUL character, a wrong number of
            columns, no JSON, missing or invalid values.
        unreadable: the files that cannot be read.
        formats: how files are read if it was detected, each with the first of these files.
        layouts: the columns from which files are read, each with the first of these files.
        rows: the number of all rows that were read.
        skipped_rows: the number of those that are invalid.
        changes: the rows that checks drop or repair, as ``skipped_rows`` and ``examples``, by check
            and action, such as ``empty_side/dropped``.
    """

    examples: list[ReadProblem] = field(default_factory=list)
    unreadable: list[ReadProblem] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    layouts: list[Layout] = field(default_factory=list)
    rows: int = 0
    skipped_rows: int = 0
    changes: dict[str, ReadProblems] = field(default_factory=dict)

    def add(self, file: str, line: int, text: str, remedy: str | None = None) -> None:
        """Record the problem of a line."""
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(ReadProblem(file, line, text, remedy))
            # Lines are decoded a block at a time, before their values are checked.
            self.examples.sort(key=lambda problem: problem.line or 0)

    def add_change(self, change: str, file: str, line: int, text: str) -> None:
        """Record a row that a check drops or repairs."""
        rows = self.changes.setdefault(change, ReadProblems())
        rows.skipped_rows += 1
        rows.add(file, line, text)

    @property
    def unused(self) -> dict[str, int]:
        """The numbers of rows that are skipped or dropped, by reason."""
        rows = {reason: changed.skipped_rows for reason, changed in self.changes.items()}
        dropped = {reason: count for reason, count in rows.items() if reason.endswith("dropped")}
        return {"invalid": self.skipped_rows, **dropped} if self.skipped_rows else dropped

    def merge(self, other: ReadProblems) -> None:
        """Add the problems of a later file."""
        self.examples.extend(other.examples[: MAX_EXAMPLES - len(self.examples)])
        self.unreadable.extend(other.unreadable)
        self.formats = {**other.formats, **self.formats}
        merge_layouts(self.layouts, other.layouts)
        self.rows += other.rows
        self.skipped_rows += other.skipped_rows
        for change, rows in other.changes.items():
            self.changes.setdefault(change, ReadProblems()).merge(rows)

    def is_fatal(self, config: DataConfig) -> bool:
        """Return whether a file cannot be read, or an invalid row must not be skipped."""
        return bool(self.unreadable or (self.skipped_rows and config.bad_rows == "fail"))

    def format_notes(self) -> Iterator[str]:
        """Yield a sentence about each detected format."""
        for text, file in self.formats.items():
            yield f"{os.path.basename(file)}: {text}"

    def first_row_notes(self) -> Iterator[str]:
        """Yield a sentence about the first row of each layout."""
        for layout in self.layouts[:_MAX_LAYOUTS]:
            if layout.rows:
                yield layout.describe()

    def first_rows(self) -> list[dict[str, Any]]:
        """Return the first row of each layout by feature, and its columns, as plain data."""
        return [layout.to_json() for layout in self.layouts[:_MAX_LAYOUTS] if layout.rows]

    def notes(self) -> Iterator[str]:
        """Yield a sentence for skipped rows, remarkable columns, and checks that changed rows."""
        if self.skipped_rows:
            rows, example = format_count(self.skipped_rows, "invalid row"), self.examples[0]
            yield f"{rows} skipped; the first is {example.location}: {example.text}"
        for layout in self.layouts[:_MAX_LAYOUTS]:
            yield from layout.warnings()
        for change, changed in sorted(self.changes.items()):
            rows, example = format_count(changed.skipped_rows, "row"), changed.examples[0]
            check, verb = change.split("/")
            yield f"{check}: {rows} {verb}; the first is {example.location}: {example.text}"

    def raise_if_unusable(self, config: DataConfig) -> None:
        """Raise the one error that all problems add up to.

        Raises:
            UserError: a problem is fatal, or more rows than ``bad_rows_limit`` are skipped.
        """
        if self.unreadable:
            more = format_count(len(self.unreadable) - 1, "more unreadable file")
            raise self.unreadable[0].as_user_error(f" ({more})" if self.unreadable[1:] else "")
        unused, limit = self.unused, config.bad_rows_limit
        if not unused:
            return
        first = self.changes.get(next(iter(unused)), self).examples[0]
        if self.skipped_rows and config.bad_rows == "fail":
            count = ""
            if self.skipped_rows > 1:
                count = f" ({self.skipped_rows:,} invalid rows in total)"
            remedy = first.remedy or "Fix the file, or set `data.bad_rows` to skip."
            raise DataError(first.text + count, first.location, remedy)
        # A quotient, not a product: 29 of 100 rows are not above a limit of 0.29.
        total = sum(unused.values())
        share = total / self.rows
        if share > limit:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in unused.items())
            raise DataError(
                f"{total:,} of {format_count(self.rows, 'row')} ({share:.2%}) would be "
                f"skipped; the limit is {limit:.2%} ({reasons}). First problem: {first.text}",
                first.location,
                first.remedy
                or "Fix the files or how they are read (`data.columns`, `data.images`), change "
                "`data.checks`, or raise `data.bad_rows_limit`.",
            )
