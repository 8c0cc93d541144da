"""``regard tune``: better values for a few keys, in a file that one can run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import terminal
from pipeline.commands.run import ConfigArgument, Request, run_pipeline

if TYPE_CHECKING:
    from pipeline.config import Config
    from pipeline.outcome import Outcome
    from pipeline.progress import Progress
    from pipeline.runs import Run


def tune(
    config: ConfigArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Where to.", show_default="CONFIG.tuned.yaml"
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over a file that is there.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Forget all trials of this pipeline, and begin anew.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for another run of this pipeline to end.")
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Search for the best values of the keys that the section tune names.

    The file's own text, comments and all, is written with the best values to a new
    file. Trials that are done are kept, and interrupted ones go on, so the same
    command goes on after a failure or Ctrl-C, or with more trials.

    [bold]Examples[/bold]

      regard tune configs/quickstart.yaml

      regard tune configs/quickstart.yaml -o configs/better.yaml

    [bold]Exit status[/bold]: 0 done; 1 a node failed; 2 the input is at fault, or too
    many trials failed; 130 interrupted.
    """
    from pipeline.config.tune_checks import dimensions
    from pipeline.nodes import TUNER
    from pipeline.tuning import output

    original = output.Original.read(config)
    _check_section(original.config, config)
    path = output.target(config, out, force)
    searched = dimensions(original.config)
    output.check(original, path, {one.key: one.probes()[0] for one in searched})

    def ended(outcome: Outcome, state: Progress, run: Run) -> int:
        if outcome.exit_status != 0:
            console = terminal.err() if as_json else terminal.out()
            _show_bad_end(outcome, run, console, config, out)
            return outcome.exit_status
        found = _found(state)
        output.write(original, path, found)
        if as_json:
            values = found["trials"][0]["values"]
            terminal.print_json({"file": str(path), "values": values, **found})
        else:
            _show(found, path)
        return 0

    raise typer.Exit(
        run_pipeline(
            Request(
                config,
                first=TUNER if again else None,
                last=TUNER,
                wait=wait,
                as_json=as_json,
                tuned=ended,
            )
        )
    )


def _check_section(config: Config, path: Path) -> None:
    from components.errors import UserError

    if config.tune is None:
        raise UserError(
            "there is no section tune, which says what to search",
            where=str(path),
            remedy="Such as tune: {over: {training.learning_rate: {log: [0.0001, 0.01]}}}; "
            "`regard config reference` prints all its keys.",
        )


def _found(state: Progress) -> dict[str, Any]:
    """What the Tuner, or the one that it is cached from, has written, and where."""
    from pipeline.nodes import TUNER

    folder = Path(state.outputs(TUNER)["tuner_results"])
    found = json.loads((folder / "trials.json").read_text(encoding="utf-8"))
    return {**found, "table": str(folder / "trials.csv")}


def _show_bad_end(outcome: Outcome, run: Run, console: Any, config: Path, out: Path | None) -> None:
    from pipeline.outcome import show_bad_end

    command = ["regard", "tune", str(config), *(["-o", str(out)] if out else [])]
    show_bad_end(outcome, str(run.log), console, shlex.join(command))


def _show(found: dict[str, Any], path: Path) -> None:
    from components.tuner.ranking import plain
    from models.metrics import METRICS
    from pipeline.live import duration

    objective = found["objective"]
    label = METRICS[objective].label if objective in METRICS else objective
    keys = list(found["trials"][0]["values"])
    rows = [
        [
            f"{row['trial']} (from {row['continues']})" if row["continues"] else str(row["trial"]),
            row["state"] if row["score"] is None else f"{row['score']:.4f}",
            *(plain(row["values"][key]) for key in keys),
            str(row["epochs"] or ""),
            duration(row["seconds"]) if row["seconds"] else "",
            row["error"],
        ]
        for row in found["trials"]
    ]
    console = terminal.out()
    console.print()
    headings = ["trial", label, *keys, "epochs", "training", ""]
    terminal.print_table(headings, rows, console)
    console.print()
    for name, text in (
        ("best", f"{path}"),
        ("table", found["table"]),
        ("next", f"regard run {shlex.quote(str(path))}"),
    ):
        console.print(f"{name:<6} {text}", soft_wrap=True)
