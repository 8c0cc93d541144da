"""What commands share: consoles, JSON output, options, names with a did-you-mean."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from components.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
RegistryOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The registry.", show_default="$REGARD_HOME/registry"),
]


def out(markup: bool = False) -> Console:
    """Standard output; colours only in a terminal, and none where NO_COLOR is set.

    Args:
        markup: whether ``[bold]`` in a text is a style; texts from users are not to be read so.
    """
    from rich.console import Console

    return Console(highlight=False, markup=markup, emoji=False)


def err() -> Console:
    """Standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Says on a terminal what is being done, and goes; gives a function that says something else.

    It keeps a descriptor of its own, so that it stays where a library's chatter is kept away.
    """
    from rich.console import Console

    with open(os.dup(2), "w", encoding="utf-8") as stream:
        console = Console(file=stream, highlight=False, markup=False, emoji=False)
        with console.status(text) as status:
            yield status.update


def print_json(value: Any) -> None:
    """One JSON value on standard output, indented."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    console: Console,
    below: int = 1,
    style: Callable[[Sequence[str]], tuple[int, str] | None] = lambda _: None,
) -> None:
    """One line a row; where a terminal is too narrow, the last cells stand below their row.

    Args:
        headings: of the columns.
        rows: the texts of the cells.
        console: where; a log or a pipe has no width.
        below: how many cells may stand below, each on a line of its own.
        style: the column of a row that has a style, and which.
    """
    from rich.padding import Padding
    from rich.text import Text

    gap = "  "
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    narrow = console.is_terminal and sum(widths) + len(gap) * (len(widths) - 1) > console.width
    shown = len(headings) - (below if narrow else 0)

    def line(cells: Sequence[str]) -> str:
        return gap.join(map(str.ljust, cells[:shown], widths)).rstrip()

    console.print(Text(line(headings), "bold"), soft_wrap=True)
    for row in rows:
        text = Text(line(row))
        if found := style(row):
            column, colour = found
            start = sum(widths[:column]) + column * len(gap)
            text.stylize(colour, start, start + len(row[column]))
        console.print(text, soft_wrap=True)
        for cell in filter(None, row[shown:]):
            console.print(Padding(Text(cell, "dim"), (0, 0, 0, 4)))


def print_error(error: UserError) -> None:
    """What was wrong, where, and what to do, in red and without a traceback."""
    from rich.text import Text

    where = f"{error.where}: " if error.where else ""
    text = Text("error: ", "bold red").append(Text(f"{where}{error.message}", "red"))
    err().print(text, soft_wrap=True)
    if error.remedy:
        err().print(Text(error.remedy, ""), soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """What may turn out to be wrong, a line each, on standard error."""
    for note in notes:
        err().print(f"note: {note}", soft_wrap=True)


def check_name(given: str, names: Iterable[str], kind: str, where: str) -> None:
    """Raises a ``UserError`` with the closest name, unless ``given`` is one of ``names``."""
    choices = list(names)
    if given in choices:
        return
    close = difflib.get_close_matches(given, choices, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    remedy = f"There is: {', '.join(choices)}." if choices else "There is none yet."
    raise UserError(f"there is no {kind} {given!r}{hint}", where=where, remedy=remedy)
