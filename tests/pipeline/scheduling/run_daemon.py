"""Keeps the schedule of a file, with processes that stand in for runs, until it is killed."""

import sys
from pathlib import Path

from regard.pipeline.scheduling.daemon import ScheduleDaemon
from regard.pipeline.scheduling.settings import ScheduleSettings
from regard.pipeline.workspace import Workspace


def main(path: Path) -> None:
    command = [sys.executable, "-m", "tests.pipeline.scheduling.fake_run", str(path)]
    settings = ScheduleSettings(path)
    daemon = ScheduleDaemon(settings, Workspace.from_environment(), print, command)
    with daemon.open():
        daemon.serve()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
