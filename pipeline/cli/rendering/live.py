"""The progress of a run: redrawn in place in a terminal, printed line by line elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common.run_progress import Progress
from regard.components.common.run_record import (
    CACHED,
    DONE,
    FAILED,
    RUNNING,
    STOPPED,
    WAITING,
    Node,
)
from regard.core.events import Event
from regard.core.formatting import format_duration
from regard.core.log_lines import LogLines
from regard.pipeline.cli import terminal
from regard.pipeline.runs.supervise import View

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_SYMBOLS = {
    WAITING: ("○", "-", "dim"),
    RUNNING: ("●", "*", "bold cyan"),
    DONE: ("✓", "+", "green"),
    CACHED: ("⟲", "=", "blue"),
    FAILED: ("✗", "x", "bold red"),
    STOPPED: ("◼", "#", "yellow"),
}
_BAR_WIDTH = 30
_MAX_NOTES = 10  # notes shown per node
_PLAIN_START_SECONDS = 0.5  # a node that ends sooner gets one line instead of two
_PLAIN_PROGRESS_SECONDS = 20.0  # minimum time between two progress lines of a node


class TerminalDisplay:
    """Displays messages on standard error, and the run on a console.

    Args:
        console: The console; a quiet one also suppresses messages.
        verbose: Whether to print the log of the run, too.
        has_summary: Whether a summary of a successful run is printed after its view, so that the
            view ends without what the summary contains.
    """

    def __init__(self, console: Console, verbose: bool = False, *, has_summary: bool = False):
        self._console = console
        self._verbose = verbose
        self._has_summary = has_summary

    def message(self, text: str) -> None:
        """Print a line on standard error."""
        if not self._console.quiet:
            terminal.err().print(text, soft_wrap=True)

    @contextlib.contextmanager
    def view(self, title: str, log: str) -> Iterator[View]:
        """Open a view that suits the console: a `LiveView` in a terminal."""
        if self._verbose:
            log_view = LogView(self._console, title, log)
            yield log_view
            log_view.print_log(to_end=True)
            return
        if not self._console.is_terminal:
            yield PlainView(self._console, title, log)
            return
        from rich.live import Live

        self._console.print(title, style="bold", markup=False, soft_wrap=True)
        self._console.print(f"log: {log}", style="dim", markup=False, soft_wrap=True)
        with Live(console=self._console, auto_refresh=False, redirect_stderr=False) as live:
            yield LiveView(self._console, live, self._has_summary)


def symbol(state: str, console: Console) -> tuple[str, str]:
    """The symbol and the style of a state; ASCII if the terminal does not support Unicode."""
    unicode, ascii, style = _SYMBOLS.get(state, ("?", "?", ""))
    return (unicode if console.encoding.startswith("utf") else ascii), style


class LiveView:
    """The nodes with state, time and messages, redrawn in place.

    Args:
        console: The console.
        live: The display that is redrawn.
        has_summary: Whether to hide, after a success, results and warnings of the nodes, which the
            summary of the run contains.
    """

    def __init__(self, console: Console, live: Live, has_summary: bool = False):
        self._console, self._live = console, live
        self._has_summary = has_summary
        self._messages: list[str] = []

    def event(self, event: Event, state: Progress) -> None:
        """Do nothing; the next refresh draws the new state."""

    def refresh(self, state: Progress) -> None:
        """Draw the current state."""
        self._live.update(self.draw(state), refresh=True)

    def say(self, text: str) -> None:
        """Show a sentence below the nodes."""
        self._messages.append(text)

    def draw(self, state: Progress, now: float | None = None) -> RenderableType:
        """Return the view as a Rich renderable."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True, min_width=7)
        table.add_column(ratio=1, overflow="fold")
        is_success = all(node.state in (DONE, CACHED) for node in state.nodes.values())
        with_results = not (self._has_summary and is_success)
        for node in state.nodes.values():
            mark, style = symbol(node.state, self._console)
            cached = node.state == CACHED
            name_style = style if node.state != DONE else ""
            table.add_row(
                Text(mark, style),
                Text(node.name, name_style),
                Text("" if cached else format_duration(node.elapsed(now)), "dim"),
                self._detail(node, with_results),
            )
        parts: list[RenderableType] = [table]
        parts += [Text(text) for text in [*state.notes, *self._messages]]
        if state.startup_text:
            parts.append(Text(f"{state.startup_text} …", "dim"))
        return Group(*parts)

    def _detail(self, node: Node, with_results: bool) -> RenderableType:
        from rich.columns import Columns
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        lines: list[RenderableType] = []
        if node.state == RUNNING and node.text:
            lines.append(Text(node.text))
        if node.state == RUNNING and node.fraction is not None:
            bar = ProgressBar(1.0, node.fraction, _BAR_WIDTH)
            lines.append(Columns([bar, Text(f"{node.fraction:.0%}", "dim")]))
        if node.state in (CACHED, STOPPED):
            lines.append(Text(node.state, "dim"))
        if len(node.notes) > _MAX_NOTES:  # a search has one per trial
            lines.append(Text(f"… {len(node.notes) - _MAX_NOTES} earlier", "dim"))
        lines += [Text(text, "dim") for text in node.notes[-_MAX_NOTES:]]
        if with_results:
            lines += [Text(text, "dim") for text in node.results]
            lines += [Text(text, "yellow") for text in node.warnings]
        return Group(*lines) if lines else Text("")


class PlainView:
    """One line per event, for logs and pipes."""

    def __init__(self, console: Console, title: str, log: str):
        self._console = console
        self._last_line: dict[str, float] = {}
        self._unannounced: dict[str, float] = {}  # start times of nodes without a line
        self.say(title)
        self.say(f"log: {log}")

    def event(self, event: Event, state: Progress) -> None:
        """Print the event; progress of a node at most once in a while."""
        kind, name = event.get("kind"), str(event.get("node") or "")
        if kind == "node":
            self._node(state.nodes[name])
        elif kind == "progress" and self._is_due(name):
            self._announce(name)
            self.say(f"  {name + ': ' if name else ''}{event.get('text', '')}")
        elif kind in ("note", "result", "warning"):
            self._announce(name)
            prefix = "warning: " if kind == "warning" else ""
            self.say(f"  {name + ': ' if name else ''}{prefix}{event.get('text', '')}")

    def refresh(self, state: Progress) -> None:
        """Announce nodes that have been running for a moment."""
        for name, since in list(self._unannounced.items()):
            if time.monotonic() - since >= _PLAIN_START_SECONDS:
                self._announce(name)

    def say(self, text: str) -> None:
        """Print one line without wrapping."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _node(self, node: Node) -> None:
        self._last_line[node.name] = time.monotonic()
        if node.state == RUNNING:
            self._unannounced[node.name] = self._last_line[node.name]
            return
        self._unannounced.pop(node.name, None)
        mark, _ = symbol(node.state, self._console)
        text = format_duration(node.seconds) if node.state == DONE else node.state
        self.say(f"{mark} {node.name} {text}".rstrip())

    def _announce(self, name: str) -> None:
        if self._unannounced.pop(name, None) is not None:
            self.say(f"{symbol(RUNNING, self._console)[0]} {name}")

    def _is_due(self, name: str) -> bool:
        now = time.monotonic()
        if now - self._last_line.get(name, float("-inf")) < _PLAIN_PROGRESS_SECONDS:
            return False
        self._last_line[name] = now
        return True


class LogView(PlainView):
    """One line per event, and the lines of the log."""

    def __init__(self, console: Console, title: str, log: str):
        super().__init__(console, title, log)
        self._lines = LogLines(Path(log))

    def refresh(self, state: Progress) -> None:
        """Print the lines that the log has received."""
        super().refresh(state)
        self.print_log()

    def print_log(self, to_end: bool = False) -> None:
        """Print new lines; the last one only ``to_end`` if it may still be in progress."""
        for line in self._lines.new(to_end):
            self.say(line)
