"""A schedule in simulated time, over real files and runs that only leave their record."""

import contextlib
import os
import signal
import sys
import time
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from regard.pipeline.scheduling import attempt, daemon, state
from regard.pipeline.scheduling.daemon import ScheduleDaemon
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.workspace import Workspace
from tests.pipeline.scheduling import fake_run
from tests.pipeline.scheduling.growing_corpus import GrowingCorpus

HOUR = 3600.0
START = datetime(2026, 11, 22, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
NIGHTLY = "  cron: 0 3 * * *\n  timezone: Europe/Berlin\n  new_span: true\n"


class FakeDaemon(ScheduleDaemon):
    """Sleeps in simulated time and stops after some hours. Events happen while it sleeps."""

    def __init__(self, simulation, hours, events=None, pace=0.0):
        self.lines: list[str] = []
        path = simulation.folder / "tiny.yaml"
        settings = ScheduleSettings(path)
        command = [*simulation.command, str(path)]
        super().__init__(settings, simulation.workspace, self.lines.append, command)
        self.time, self.end = simulation.now, simulation.now + hours * HOUR
        self.pace = pace  # seconds of real time per sleep
        self.events = sorted((self.time + at * HOUR, event) for at, event in (events or {}).items())

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        if self.pace:
            time.sleep(self.pace)
        self.time += max(seconds, 0.001)
        while self.events and self.time >= self.events[0][0]:
            self.events.pop(0)[1]()
        if self.time >= self.end:
            self.stop_signals.append(signal.SIGTERM)

    def starting_with(self, *prefixes: str) -> list[str]:
        return [line for line in self.lines if line.startswith(prefixes)]


class InlineRun:
    """A run in this process, which has ended when it is created."""

    def __init__(self, command, folder):
        self.pid = os.getpid()
        with open(folder / attempt.OUTPUT, "w") as output, contextlib.redirect_stderr(output):
            self.status = fake_run.main(Path(command[-1]), "--whole" in command)

    def wait(self, timeout):
        return self.status


class Simulation(GrowingCorpus):
    """A corpus, a workspace, and a plan of what the runs do.

    Attributes:
        has_processes: Whether each run is a process, as in production, which takes longer. Runs
            that are killed or interrupted always are.
    """

    has_processes = False

    def __init__(self, folder, monkeypatch):
        super().__init__(folder)
        monkeypatch.setenv("REGARD_HOME", str(folder / "home"))
        self.workspace = Workspace(folder / "home")
        self.paths = self.workspace.pipeline("tiny")
        self.command = [sys.executable, "-m", "tests.pipeline.scheduling.fake_run"]
        self.now = START
        self._start_process = attempt.start_run
        monkeypatch.setattr(attempt, "start_run", self.start_run)
        monkeypatch.setattr(daemon, "_MAX_SLEEP_SECONDS", 300.0)  # fewer steps
        self.plan()
        self.write_span(1)

    def plan(self, *outcomes: str) -> None:
        (self.folder / "plan").write_text("".join(f"{outcome}\n" for outcome in outcomes))

    def start_run(self, command, folder, home):
        """Starts a process for a run, or runs it to its end."""
        ends_early = (self.folder / "plan").read_text().startswith(("dies", "waits"))
        if self.has_processes or ends_early:
            return self._start_process(command, folder, home)
        return InlineRun(command, folder)

    def serve(self, hours: float, events=None, pace: float = 0.0) -> FakeDaemon:
        """Keeps the schedule for some hours; the next call continues from there."""
        scheduler = FakeDaemon(self, hours, events, pace)
        with scheduler.open():
            scheduler.serve()
        self.now = scheduler.time
        return scheduler

    @property
    def state(self) -> state.ScheduleState:
        return state.read_state(self.paths.schedule)

    @property
    def statuses(self) -> list[str]:
        return [attempt.status for attempt in self.state.history]

    @property
    def minutes(self) -> list[int]:
        """When the attempts ended, in minutes from the start of the first daemon."""
        return [round((attempt.ended - START) / 60) for attempt in self.state.history]
