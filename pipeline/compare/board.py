"""How a comparison is shown while it goes on: one line a model."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline import live, progress
from pipeline.live import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

_PLAIN_SECONDS = 60.0  # outside a terminal: at most one line of progress a model in this time
_REDRAW_SECONDS = 0.5


@dataclasses.dataclass
class Row:
    """One model on the board."""

    label: str
    state: str = progress.WAITING
    began: float | None = None
    seconds: float | None = None
    text: str = ""
    told: float = float("-inf")  # when its progress was last printed


class Board:
    """The models and their states: redrawn in a terminal, line by line elsewhere."""

    def __init__(self, console: Console, labels: Sequence[str]):
        self._console = console
        self._rows = {label: Row(label) for label in labels}
        self._said: list[str] = []
        self._live: Live | None = None
        self._drawn = float("-inf")

    @contextlib.contextmanager
    def open(self) -> Iterator[Board]:
        """Shows the board until the block ends."""
        if not self._console.is_terminal:
            yield self
            return
        from rich.live import Live

        with Live(console=self._console, auto_refresh=False, redirect_stderr=False) as self._live:
            yield self
            self._live.update(self.draw(), refresh=True)

    def started(self, label: str) -> None:
        """A model begins."""
        row = self._rows[label]
        row.state, row.began = progress.RUNNING, time.monotonic()
        self._print(row, "")

    def progress(self, label: str, node: str, text: str) -> None:
        """What a model's running node tells."""
        row, now = self._rows[label], time.monotonic()
        row.text = f"{node}: {text}" if text else node
        if text and now - row.told >= _PLAIN_SECONDS:
            row.told = now
            self._print(row, f" {row.text}")

    def ended(self, label: str, state: str, text: str) -> None:
        """A model has ended: ``done``, ``cached``, ``failed`` or ``stopped``."""
        row = self._rows[label]
        row.state, row.text = state, text
        if row.began is not None:
            row.seconds = time.monotonic() - row.began
        self._print(row, f" {duration(row.seconds)} {text}".rstrip())

    def say(self, text: str) -> None:
        """A sentence that belongs to no model."""
        if self._live is None:
            self._console.print(text, soft_wrap=True)
        else:
            self._said.append(text)

    def refresh(self) -> None:
        """Draws the board as it is now, but not too often."""
        now = time.monotonic()
        if self._live is not None and now - self._drawn >= _REDRAW_SECONDS:
            self._drawn = now
            self._live.update(self.draw(), refresh=True)

    def draw(self) -> Table:
        """The board as a table for Rich."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=1)
        table.add_column(no_wrap=True, min_width=max(map(len, self._rows), default=0))
        table.add_column(justify="right", no_wrap=True, min_width=7)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for row in self._rows.values():
            sign, style = live.symbol(row.state, self._console)
            spent = row.seconds
            if row.state == progress.RUNNING and row.began is not None:
                spent = time.monotonic() - row.began
            table.add_row(
                Text(sign, style), Text(row.label), Text(duration(spent), "dim"), Text(row.text)
            )
        for text in self._said:
            table.add_row("", "", "", Text(text))
        return table

    def _print(self, row: Row, text: str) -> None:
        if self._live is None:
            sign, _ = live.symbol(row.state, self._console)
            self._console.print(f"{sign} {row.label}{text}", soft_wrap=True)
