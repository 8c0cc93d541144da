"""Keeps the schedule of a file until it is killed, with runs that only look like some."""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.commands.schedule_views import LineView
from pipeline.commands.terminal import out
from pipeline.scheduling.clock import Clock
from pipeline.scheduling.scheduler import Scheduler
from pipeline.scheduling.settings import Settings
from pipeline.workspace import Workspace


def main(path: Path) -> None:
    settings, clock = Settings(path, {}).read(), Clock()
    command = [sys.executable, "-m", "tests.pipeline.scheduling.fake_run", str(path)]
    view = LineView(out(), settings)
    scheduler = Scheduler(settings, Workspace.from_environment(), view, clock, command)
    with scheduler.held(), clock.listening():
        scheduler.serve()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
