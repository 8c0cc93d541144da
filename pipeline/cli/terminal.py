"""Shared by the commands: consoles, tables, JSON output, and errors."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from regard.core.errors import NotFoundError, UserError
from regard.core.formatting import printable
from regard.core.suggestions import suggest

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment
    from typing_extensions import Buffer

OUTPUT = "standard output"  # for errors
_ESCAPED = re.compile("[\x7f-\x9f\ud800-\udfff]")


def out(markup: bool = False) -> Console:
    """Return a console for standard output, with colors in a terminal unless NO_COLOR is set.

    Args:
        markup: Whether ``[bold]`` in a text is a style. Not for texts from users.
    """
    return _console(markup=markup)


def err() -> Console:
    """Return a console for standard error."""
    return _console(stderr=True)


def work_console(as_json: bool, quiet: bool) -> Console:
    """Return the console for the progress and the result of a command that does work.

    Args:
        as_json: Whether standard output is for JSON, so that the progress is on standard error.
        quiet: Whether to print nothing.
    """
    return _console(stderr=as_json, quiet=quiet)


def failure_console(console: Console) -> Console:
    """Return the console for a failure: standard error in place of a quiet one."""
    return err() if console.quiet else console


def _console(markup: bool = False, **options: Any) -> Console:
    """Return a console that writes the control characters of a text as ``printable`` does.

    In a notebook, where Rich would draw each line as HTML, it prints lines, as into a pipe.
    """
    from rich.console import Console

    class PrintableConsole(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
            for segment in super().render(*arguments, **options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

        def on_broken_pipe(self) -> None:
            """Continue without output: what reads it, such as ``head``, may end before a run."""
            self.quiet = True
            discard_output(self.file.fileno())

    if Console().is_jupyter:  # its streams claim to be terminals
        options |= {"force_jupyter": False, "force_terminal": False}
    return PrintableConsole(highlight=False, markup=markup, emoji=False, **options)


@contextlib.contextmanager
def output_may_be_closed() -> Iterator[None]:
    """End the block quietly if it writes to a pipe that nobody reads, as in ``regard runs | head``.

    Other errors of pipes, for example of a server, are raised.
    """
    output = os.dup(sys.stdout.fileno())  # Rich replaces the original
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the help ends with an exit
        poll = select.poll()
        poll.register(output, 0)
        if not any(events & select.POLLERR for _, events in poll.poll(0)):
            raise
        discard_output(sys.stdout.fileno())
    finally:
        os.close(output)


class _StandardOutput(io.FileIO):
    """Standard output, which its errors name, for example if it is a file on a full disk."""

    def __init__(self) -> None:
        super().__init__(sys.stdout.fileno(), "wb", closefd=False)

    def write(self, data: Buffer, /) -> int:
        """Write bytes."""
        try:
            return super().write(data)
        except BrokenPipeError:  # see `output_may_be_closed`
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from None


def name_output_in_errors() -> None:
    """Let errors of writing name the standard output, however much of it has been written."""
    stream = sys.stdout
    buffer = getattr(stream, "buffer", None)
    is_unbuffered = isinstance(buffer, io.FileIO)
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(
        buffer if is_unbuffered else getattr(buffer, "raw", None), io.FileIO
    ):
        return  # it is captured
    output = _StandardOutput()
    sys.stdout = io.TextIOWrapper(
        output if is_unbuffered else io.BufferedWriter(output),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def flush_output() -> None:
    """Write what standard output has in its buffer, unless nobody reads it.

    Raises:
        OSError: It cannot be written, for example because the disk is full.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # see `output_may_be_closed`
        return
    except OSError as error:
        raise OSError(error.errno, error.strerror, OUTPUT) from None


def discard_output(descriptor: int = 1) -> None:
    """Let everything that is written to a file descriptor disappear."""
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), descriptor)


@contextlib.contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show a status line in a terminal until the block ends; yield a function that changes it.

    The line has a file descriptor of its own, so that it remains visible while the output of
    libraries is suppressed.
    """
    with open(os.dup(2), "w", encoding="utf-8") as stream:
        console = _console(file=stream)
        with console.status(text) as status:
            yield status.update


@contextlib.contextmanager
def input_progress(has_inputs: bool) -> Iterator[Callable[[int], None]]:
    """Show a prompt for lines that are typed, or the number of lines that were read from a file.

    Both are on standard error, if it is a terminal, with a file descriptor of their own, as in
    ``working``. The number would be mixed with outputs in the same terminal.

    Args:
        has_inputs: Whether standard input is not read at all.

    Yields:
        A function that is called with the number of lines so far, before more are read.
    """
    is_typed, prints_here = sys.stdin.isatty(), sys.stdout.isatty()
    with open(os.dup(2), "w", encoding="utf-8") as stream:
        if has_inputs or not stream.isatty() or (prints_here and not is_typed):
            yield lambda lines: None
        elif is_typed:

            def prompt(lines: int) -> None:
                hint = "" if lines else "Type an input on each line. Ctrl-D ends.\n"
                stream.write(f"{hint}> ")
                stream.flush()

            yield prompt
            stream.write("\n")  # Ctrl-D does not end the line
        else:
            with _console(file=stream).status("Loading …") as status:
                yield lambda lines: status.update(f"{lines:,} lines …")


def print_lines(*lines: str) -> None:
    """Print lines on standard output, without wrapping them."""
    console = out()
    for line in lines:
        console.print(line, soft_wrap=True)


def open_page(address: str) -> None:
    """Open a page, whose address has been printed, in a browser, or ask the user to do so."""
    import webbrowser

    try:
        is_open = webbrowser.open(address)
    except (webbrowser.Error, IndexError, OSError, ValueError):  # BROWSER may have any text
        is_open = False
    if not is_open:
        err().print("The browser could not be opened. Open the page above yourself.")


def print_text(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print one line without wrapping it: texts, and pairs of a text and its style."""
    from rich.text import Text

    console.print(Text.assemble(*parts), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a JSON value on standard output, indented."""
    _write_json(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_errors(records: Sequence[Mapping[str, Any]]) -> None:
    """Print errors as JSON on one line, which may follow lines of JSON.

    If standard output cannot be written, the line is on standard error.
    """
    text = json.dumps({"errors": records}, ensure_ascii=False)
    try:
        _write_json(text)
        flush_output()
    except BrokenPipeError:
        raise
    except OSError:
        _write_json(text, sys.stderr)


def _write_json(text: str, stream: TextIO | None = None) -> None:
    # JSON escapes control characters, but not those from U+007F, which terminals obey too, and no
    # bytes of file names that are not UTF-8, which no output can have.
    text = _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    (stream or sys.stdout).write(f"{text}\n")


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    console: Console,
    wrap_cells: int = 1,
    colored: str = "",
    colors: Mapping[str, str] | None = None,
) -> None:
    """Print one line per row; in a narrow terminal, the last cells follow on separate lines.

    Args:
        headings: The column headings.
        rows: The cells.
        console: The console; logs and pipes have no width.
        wrap_cells: The number of cells that may follow on separate lines.
        colored: The heading of a column with colors.
        colors: The colors of its cells, by their texts or what is before a comma.
    """
    from rich.padding import Padding
    from rich.text import Text

    gap = "  "
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    narrow = console.is_terminal and sum(widths) + len(gap) * (len(widths) - 1) > console.width
    columns = len(headings) - (wrap_cells if narrow else 0)

    def line(cells: Sequence[str]) -> str:
        return gap.join(map(str.ljust, cells[:columns], widths)).rstrip()

    console.print(Text(line(headings), "bold"), soft_wrap=True)
    for row in rows:
        text = Text(line(row))
        if colors:
            column = headings.index(colored)
            start = sum(widths[:column]) + column * len(gap)
            color = colors.get(row[column].partition(",")[0], "")
            text.stylize(color, start, start + len(row[column]))
        console.print(text, soft_wrap=True)
        for cell in filter(None, row[columns:]):
            console.print(Padding(Text(cell, "dim"), (0, 0, 0, 4)))


def print_fields(fields: Sequence[tuple[str, str]], console: Console) -> None:
    """Print names and texts; a terminal wraps texts, except paths, which one copies."""
    from rich.table import Table
    from rich.text import Text

    width = max((len(name) for name, _ in fields), default=0)
    for name, text in fields:
        label = Text(f"{name:<{width}}  ", "bold")
        if not console.is_terminal or os.sep in text:
            console.print(label.append(text, "not bold"), soft_wrap=True)
            continue
        row = Table.grid()
        row.add_column(no_wrap=True)
        row.add_column(overflow="fold")
        row.add_row(label, Text(text))
        console.print(row)


def print_error(error: UserError) -> None:
    """Print what is wrong, where, and how to fix it, without a traceback."""
    where = f"{error.where}: " if error.where else ""
    print_text(err(), ("error: ", "bold red"), (f"{where}{error.message}", "red"))
    if error.remedy:
        print_text(err(), error.remedy)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, one line each."""
    for note in notes:
        err().print(f"note: {note}", soft_wrap=True)


def is_interactive() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Ask before something is removed; without a terminal, require ``--yes``.

    Raises:
        UserError: nobody can answer.
        typer.Exit: the answer is no.
    """
    import typer

    if not is_interactive():
        remedy = "Pass --yes to remove without a question."
        raise UserError("Nothing was removed.", "--yes", remedy)
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)


def check_name(name: str, names: Iterable[str], kind: str, where: str) -> None:
    """Raise a ``UserError`` with the closest name unless ``name`` is one of ``names``."""
    choices = list(names)
    if name not in choices:
        remedy = f"{suggest(name, choices)}." if choices else "None exist."
        raise NotFoundError(f"Unknown {kind} {name!r}", where=where, remedy=remedy)
