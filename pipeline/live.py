"""How a run is shown while it goes on: redrawn in a terminal, line by line elsewhere."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Protocol

from pipeline import progress
from pipeline.progress import NodeProgress, Progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_SYMBOLS = {
    progress.WAITING: ("○", "-", "dim"),
    progress.RUNNING: ("●", "*", "bold cyan"),
    progress.DONE: ("✓", "+", "green"),
    progress.CACHED: ("⟲", "=", "blue"),
    progress.FAILED: ("✗", "x", "bold red"),
    progress.STOPPED: ("◼", "#", "yellow"),
}
_BAR_WIDTH = 30
_LATEST = 10  # notes of a node
_PLAIN_PATIENCE_SECONDS = 0.5  # a node that ends or is cached sooner gets one line, not two
_PLAIN_PROGRESS_SECONDS = 20.0  # at most one line of progress a node in this time


class View(Protocol):
    """What the supervisor tells: events as they come, and that time has passed."""

    def event(self, event: dict[str, Any], state: Progress) -> None:
        """An event has been taken into ``state``."""

    def refresh(self, state: Progress) -> None:
        """Nothing may have happened, but clocks go on."""

    def say(self, text: str) -> None:
        """A sentence for the user that belongs to no node."""


@contextlib.contextmanager
def open_view(console: Console, title: str, log: str, live: bool | None = None) -> Any:
    """Gives the view that suits the console: a :class:`LiveView` in a terminal."""
    if not (console.is_terminal if live is None else live):
        yield PlainView(console, title, log)
        return
    view = LiveView(console, title, log)
    with view:
        yield view


def symbol(state: str, console: Console) -> tuple[str, str]:
    """The sign and the style of a state; ASCII where the terminal cannot show more."""
    sign, ascii_sign, style = _SYMBOLS.get(state, ("?", "?", ""))
    return (sign if console.encoding.startswith("utf") else ascii_sign), style


def duration(seconds: float | None) -> str:
    """Seconds in the shortest form that says enough: ``0.4 s``, ``12 s``, ``3:05``, ``1:02:03``."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class LiveView:
    """The graph, redrawn in place: node, state, time, and what the running node tells."""

    def __init__(self, console: Console, title: str, log: str):
        from rich.live import Live

        self._console, self._title, self._log = console, title, log
        self._said: list[str] = []
        self._live = Live(console=console, auto_refresh=False, redirect_stderr=False)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.__exit__(*exception)  # type: ignore[arg-type]

    def event(self, event: dict[str, Any], state: Progress) -> None:
        """Events change the state only; the next refresh draws it."""

    def refresh(self, state: Progress) -> None:
        """Draws the state as it is now."""
        self._live.update(self.draw(state), refresh=True)

    def say(self, text: str) -> None:
        """Shows a sentence below the graph."""
        self._said.append(text)

    def draw(self, state: Progress, now: float | None = None) -> RenderableType:
        """The whole view as something that Rich can print."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True, min_width=7)
        table.add_column(ratio=1, overflow="fold")
        for node in state.nodes.values():
            sign, style = symbol(node.state, self._console)
            cached = node.state == progress.CACHED
            name_style = style if node.state != progress.DONE else ""
            table.add_row(
                Text(sign, style),
                Text(node.name, name_style),
                Text("" if cached else duration(node.elapsed(now)), "dim"),
                self._detail(node),
            )
        parts: list[RenderableType] = [Text(self._title, "bold"), table]
        parts += [Text(text) for text in [*state.notes, *self._said]]
        if state.starting:
            parts.append(Text(f"{state.starting} …", "dim"))
        parts.append(Text(f"log: {self._log}", "dim", overflow="fold"))
        return Group(*parts)

    def _detail(self, node: NodeProgress) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        lines: list[RenderableType] = []
        if node.state == progress.RUNNING and node.text:
            lines.append(Text(node.text))
        if node.state == progress.RUNNING and node.fraction is not None:
            lines.append(self._bar(node.fraction))
        if node.state in (progress.CACHED, progress.STOPPED):
            lines.append(Text(node.state, "dim"))
        if len(node.notes) > _LATEST:  # a search has one for each trial
            lines.append(Text(f"… {len(node.notes) - _LATEST} before", "dim"))
        lines += [Text(text, "dim") for text in node.notes[-_LATEST:]]
        lines += [Text(text, "yellow") for text in node.warnings]
        return Group(*lines) if lines else Text("")

    def _bar(self, fraction: float) -> Text:
        from rich.text import Text

        full, empty = ("━", "━") if self._console.encoding.startswith("utf") else ("#", "-")
        done = round(fraction * _BAR_WIDTH)
        bar = Text(full * done, "cyan", no_wrap=True)
        return bar.append(empty * (_BAR_WIDTH - done), "dim").append(f" {fraction:.0%}", "dim")


class PlainView:
    """One line an event, for logs: nothing is redrawn."""

    def __init__(self, console: Console, title: str, log: str):
        self._console = console
        self._last: dict[str, float] = {}
        self._unsaid: dict[str, float] = {}  # nodes that run, and since when
        self.say(title)
        self.say(f"log: {log}")

    def event(self, event: dict[str, Any], state: Progress) -> None:
        """Prints the event, if it is one for the user and not too soon after the last."""
        kind, name = event.get("kind"), str(event.get("node") or "")
        if kind == "node":
            self._node(state.nodes[name])
        elif kind == "progress" and self._is_due(name):
            self._say_running(name)
            self.say(f"  {name + ': ' if name else ''}{event.get('text', '')}")
        elif kind in ("note", "warning"):
            self._say_running(name)
            mark = "warning: " if kind == "warning" else ""
            self.say(f"  {name + ': ' if name else ''}{mark}{event.get('text', '')}")

    def refresh(self, state: Progress) -> None:
        """Says which nodes have been running for a moment."""
        for name, since in list(self._unsaid.items()):
            if time.monotonic() - since >= _PLAIN_PATIENCE_SECONDS:
                self._say_running(name)

    def say(self, text: str) -> None:
        """Prints one line, whatever its length."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _node(self, node: NodeProgress) -> None:
        self._last[node.name] = time.monotonic()
        if node.state == progress.RUNNING:
            self._unsaid[node.name] = self._last[node.name]
            return
        self._unsaid.pop(node.name, None)
        sign, _ = symbol(node.state, self._console)
        word = duration(node.seconds) if node.state == progress.DONE else node.state
        self.say(f"{sign} {node.name} {word}".rstrip())

    def _say_running(self, name: str) -> None:
        if self._unsaid.pop(name, None) is not None:
            self.say(f"{symbol(progress.RUNNING, self._console)[0]} {name}")

    def _is_due(self, name: str) -> bool:
        now = time.monotonic()
        if now - self._last.get(name, float("-inf")) < _PLAIN_PROGRESS_SECONDS:
            return False
        self._last[name] = now
        return True
