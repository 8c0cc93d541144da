"""The process that runs one model of a comparison: ``python -m pipeline.compare.job CONFIG``.

It is ``regard run CONFIG --to Evaluator --wait`` that stops when its parent is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from components.errors import UserError
from pipeline.commands import terminal
from pipeline.commands.run import Request, run_pipeline
from pipeline.compare.results import LAST

INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Runs the pipeline of a configuration up to its evaluation; returns the exit status."""
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        return run_pipeline(Request(Path(arguments[0]), last=LAST, wait=True))
    except UserError as error:
        terminal.print_error(error)
        return 2
    except KeyboardInterrupt:  # before or after the worker, whose own stop is no exception
        return INTERRUPTED


def _stop_with_parent() -> None:
    """Asks this process to stop when its standard input ends: it is the parent's, never written."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
