"""Run Regard for hours, and record memory, disk, descriptors and failures over time.

    python -m benchmarks.long_run run FOLDER --hours 8
    python -m benchmarks.long_run summary FOLDER
    python -m benchmarks.long_run plot FOLDER docs/explanation/long-run.svg

A scheduler retrains a small model whenever a new span of data has arrived, from the weights of the
version in production. The distribution of the languages drifts from span to span. A server takes
each new version while a client sends sentences. Old runs and versions are removed. The scheduler is
killed now and then. All files, with the temporary ones, are in FOLDER; `run` continues an earlier
measurement there until it has lasted the hours. Everything listens on the loopback interface only.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.long_run.operation import operate
from benchmarks.long_run.plots import draw
from benchmarks.long_run.samples import read_samples
from benchmarks.long_run.summary import summarize


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.long_run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", required=True)
    run = parts.add_parser("run", help="measure")
    summary = parts.add_parser("summary", help="print tables of a measurement")
    plot = parts.add_parser("plot", help="draw a measurement")
    for part in (run, summary, plot):
        part.add_argument("folder", type=Path)
    run.add_argument("--hours", type=float, default=8.0, help="of the whole measurement")
    run.add_argument("--span-minutes", type=float, default=4.0, help="between new spans")
    run.add_argument("--kill-minutes", type=float, default=45.0, help="between two SIGKILLs")
    run.add_argument("--requests", type=float, default=4.0, help="sentences per second")
    plot.add_argument("file", type=Path, help="an SVG file")
    arguments = parser.parse_args()
    if arguments.part == "run":
        operate(
            arguments.folder.resolve(),
            arguments.hours,
            arguments.span_minutes,
            arguments.kill_minutes,
            arguments.requests,
        )
        return
    samples = read_samples(arguments.folder)
    if not samples:
        sys.exit(f"{arguments.folder} has no measurement.")
    if arguments.part == "plot":
        draw(samples, arguments.file)
    else:
        print(summarize(samples))


if __name__ == "__main__":
    main()
