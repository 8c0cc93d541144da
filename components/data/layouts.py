"""From which columns of its files a corpus is read, for the user, and whether files agree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regard.components.data.column_names import normal_form
from regard.components.data.column_remedies import yaml_text
from regard.core.errors import DataError
from regard.core.features import Feature
from regard.core.formatting import format_count, truncate
from regard.core.kinds.number import is_number_text

# Rows from which on equal values of a column, or numbers for a text, are remarkable.
_MIN_ROWS = 20
# Words of a row, on average, in the presence of which a first row of single words is remarkable.
_MANY_WORDS = 3
_MAX_LISTED = 20


@dataclass
class Layout:
    """From which columns the features of rows are read, and what the columns contain.

    Attributes:
        file: the first file that is read in this way.
        columns: the name of each feature's column, or the number of a column without a name.
        positions: the number of each feature's column in a table, from 1.
        has_names: whether the columns have names; parallel files are no columns.
        unused: the names of the columns that are not read.
        line: the line of the first valid row.
        first: the values of the first valid row by feature, shortened.
        rows: the number of valid rows.
        constants: the values of the text features that are the same in all rows, by feature.
        numbers: the text features whose values are numbers in all rows.
        words: the words of the texts of the first rows; of a first row without single words 0.
    """

    file: str
    columns: dict[str, str]
    positions: dict[str, int] = field(default_factory=dict)
    has_names: bool = True
    unused: list[str] = field(default_factory=list)
    line: int = 0
    first: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    constants: dict[str, str] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    words: int = 0

    def is_like(self, other: Layout) -> bool:
        """Return whether two files are read from the same columns."""
        same_columns = (self.columns, self.positions) == (other.columns, other.positions)
        return same_columns and self.has_names == other.has_names

    def absorb(self, other: Layout) -> None:
        """Add the rows of a later file with the same columns."""
        if not self.rows:
            self.line, self.first, self.file = other.line, other.first, other.file
            self.constants, self.numbers = other.constants, other.numbers
            self.words = other.words
        elif other.rows:
            constants = other.constants.items() & self.constants.items()
            self.constants = dict(sorted(constants))
            self.numbers = [name for name in self.numbers if name in other.numbers]
        self.rows += other.rows

    @property
    def needs_rows(self) -> bool:
        """Whether further rows can change more than their number."""
        return self.rows < _MIN_ROWS or bool(self.constants or self.numbers)

    def observe(self, features: Sequence[Feature], line: int, values: Sequence[Any]) -> None:
        """Record a valid row."""
        self.rows += 1
        if self.rows == 1:
            self._start(features, line, values)
        elif self.words and self.rows <= _MIN_ROWS:
            texts = [_text_of(v) for f, v in zip(features, values, strict=True) if f.tokenized]
            self.words += sum(len(text.split()) for text in texts)
        if self.rows > 1 and (self.constants or self.numbers):
            for feature, value in zip(features, values, strict=True):
                name = feature.name
                if name in self.constants and _text_of(value) != self.constants[name]:
                    del self.constants[name]
                if name in self.numbers and not is_number_text(_text_of(value)):
                    self.numbers.remove(name)

    def _start(self, features: Sequence[Feature], line: int, values: Sequence[Any]) -> None:
        self.line = line
        self.first = {
            feature.name: truncate(_display_text(value))
            for feature, value in zip(features, values, strict=True)
        }
        texts = {
            feature.name: _text_of(value)
            for feature, value in zip(features, values, strict=True)
            if feature.tokenized
        }
        self.constants = {name: text for name, text in texts.items() if text.strip()}
        self.numbers = [name for name, text in texts.items() if is_number_text(text)]
        is_plain_table = bool(self.positions) and not self.has_names
        if is_plain_table and texts and all(map(str.isalpha, texts.values())):
            self.words = len(texts)

    def describe(self) -> str:
        """Return a sentence with the first row by feature, and with the columns."""
        return f"first row, {describe_first_row(self.to_json())}"

    def warnings(self) -> Iterator[str]:
        """Yield a sentence about each text of numbers and each text that never changes."""
        if self.rows < _MIN_ROWS:
            return
        rows, file = format_count(self.rows, "row"), os.path.basename(self.file)
        if self.words > _MANY_WORDS * _MIN_ROWS * len(self.first):
            names = ", ".join(self.first.values())
            yield (
                f"The first row of {file} ({names}) may hold the names of the columns. If it does, "
                "set `data.header: true` and `data.columns`."
            )
        remedy = "If it is the wrong column, set `data.columns`"
        for name in self.numbers:
            text = f"{name} is a number in all {rows}, for example {self.first[name]!r} in {file}"
            yield f"{text}. {remedy}."
        for name, value in self.constants.items():
            if name not in self.numbers:
                yield f"{name} is {truncate(value)!r} in all {rows}, as in {file}. {remedy}."

    def to_json(self) -> dict[str, Any]:
        """Return the first row and its columns as plain data."""
        return {
            "file": self.file,
            "line": self.line,
            "columns": self.columns,
            "values": self.first,
            "unused": self.unused,
        }


def _text_of(value: str | list[str] | None) -> str:
    return "\n".join(value) if isinstance(value, list) else value or ""


def _display_text(value: Any) -> str:
    """Return a value of any kind of feature as text for a person."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    is_text = bool(values) and isinstance(values[0], str)
    return " / ".join(values) if is_text else " ".join(f"{number:.7g}" for number in values)


def describe_first_row(row: Mapping[str, Any]) -> str:
    """Return the first row of files by feature, with its columns, as one line.

    Args:
        row: as ``Layout.to_json`` returns it.
    """
    values = []
    for name, text in row["values"].items():
        column = row["columns"].get(name, "")
        column = f"column {column}" if column.isdecimal() else truncate(column, 40)
        values.append(f"{name} ({column}) {text!r}" if column and text else f"{name}: none")
    location = f"{os.path.basename(row['file'])}:{row['line']}"
    unused = truncate(", ".join(row["unused"]), 100)
    ending = f"; columns not used: {unused}" if unused else ""
    return f"{location}: {', '.join(values)}{ending}"


def merge_layouts(layouts: list[Layout], others: Iterable[Layout]) -> None:
    """Add the layouts of later files; equal ones become one."""
    for other in others:
        same = next((layout for layout in layouts if layout.is_like(other)), None)
        if same is not None:
            same.absorb(other)
        elif len(layouts) < _MAX_LISTED:
            layouts.append(replace(other))


def check_agreement(layouts: Sequence[Layout]) -> None:
    """Compare the columns of all files of a corpus.

    Raises:
        UserError: two files have their columns in another order, so that features would be mixed.
    """
    for i, layout in enumerate(layouts):
        for other in layouts[i + 1 :]:
            if layout.has_names and other.has_names:
                _check_names(layout, other)
            elif layout.positions and other.positions and layout.has_names != other.has_names:
                with_header, without_header = (
                    (layout, other) if layout.has_names else (other, layout)
                )
                _check_positions(with_header, without_header)


def _check_names(layout: Layout, other: Layout) -> None:
    features = {normal_form(name): feature for feature, name in layout.columns.items()}
    for feature, name in other.columns.items():
        owner = features.get(normal_form(name))
        if owner not in (None, feature):
            message = f"The column {name} is read as {feature} here, and as {owner} in "
            message += layout.file
            raise DataError(message, other.file, f"Set {_setting(layout.columns)}.")


def _check_positions(with_header: Layout, without_header: Layout) -> None:
    shared = with_header.positions.keys() & without_header.positions.keys()
    if all(with_header.positions[name] == without_header.positions[name] for name in shared):
        return
    order = ", ".join(with_header.columns.values())
    message = (
        f"The file has no header, and its columns are read in order. {with_header.file} has the "
    )
    message += f"columns {order} at other places"
    positions = {name: str(position) for name, position in with_header.positions.items()}
    remedy = f"Set {_setting(positions)} if the files have equal columns, or give both a header."
    raise DataError(message, without_header.file, remedy)


def _setting(columns: dict[str, str]) -> str:
    pairs = [
        f"{feature}: {column if column.isdecimal() else yaml_text(column)}"
        for feature, column in columns.items()
    ]
    return f"`data.columns: {{{', '.join(pairs)}}}`"
