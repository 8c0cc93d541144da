"""A schedule to be kept in no time: a clock, what is said, and runs that only look like some."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from zoneinfo import ZoneInfo

from pipeline.scheduling import state
from pipeline.scheduling.clock import Clock
from pipeline.scheduling.scheduler import Scheduler
from pipeline.scheduling.settings import Settings
from pipeline.workspace import Workspace
from tests.pipeline.scheduling.growing import Corpus

HOUR = 3600.0
START = datetime(2026, 11, 22, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
NIGHTLY = "  cron: 0 3 * * *\n  timezone: Europe/Berlin\n  new_span: true\n"


class FastClock(Clock):
    """Sleeps in no time, and stops at an hour after the start.

    At hours that are given something is done, while the scheduler sleeps.
    """

    def __init__(self, start: float, hours: float, doing=None, pace: float = 0.0):
        super().__init__()
        self.pace = pace  # seconds that really pass in a sleep
        self.time, self.until = start, start + hours * HOUR
        self.doing = sorted((start + hour * HOUR, work) for hour, work in (doing or {}).items())

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        time.sleep(self.pace)
        self.time += max(seconds, 0.001)
        while self.doing and self.time >= self.doing[0][0]:
            self.doing.pop(0)[1]()
        self.stops = int(self.time >= self.until)


class Lines:
    """What was said."""

    live = False

    def __init__(self):
        self.said: list[str] = []

    def say(self, text, style=""):
        self.said.append(text)

    def show(self, text):
        pass

    def of(self, *beginnings: str) -> list[str]:
        return [line for line in self.said if line.startswith(beginnings)]


class Desk(Corpus):
    """A corpus, a workspace, and what the runs are to come to."""

    def __init__(self, folder, monkeypatch):
        super().__init__(folder)
        monkeypatch.setenv("REGARD_HOME", str(folder / "home"))
        self.workspace = Workspace(folder / "home")
        self.paths = self.workspace.pipeline("tiny")
        self.command = [sys.executable, "-m", "tests.pipeline.scheduling.fake_run"]
        self.now = START
        self.plan()
        self.span(1)

    def plan(self, *todo: str) -> None:
        (self.folder / "plan").write_text("".join(f"{line}\n" for line in todo))

    def scheduler(self, clock, given=None):
        lines = Lines()
        path = self.folder / "tiny.yaml"
        made = Scheduler(
            Settings(path, given or {}).read(),
            self.workspace,
            lines,
            clock,
            [*self.command, str(path)],
        )
        return made, lines

    def serve(self, hours: float, doing=None, pace: float = 0.0, **given) -> Lines:
        """Keeps the schedule for so long; the next call goes on from there."""
        clock = FastClock(self.now, hours, doing, pace)
        made, lines = self.scheduler(clock, given)
        with made.held():
            made.serve()
        self.now = clock.time
        return lines

    @property
    def known(self) -> state.State:
        return state.read(self.paths.schedule)

    @property
    def statuses(self) -> list[str]:
        return [tried["status"] for tried in self.known.history]

    @property
    def minutes(self) -> list[int]:
        """When the attempts ended, in minutes from the start of the first scheduler."""
        return [round((tried["ended"] - START) / 60) for tried in self.known.history]
