"""``regard tune``: search for better values, and write them to a new configuration."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from regard.components.tuner.trial_table import TrialTable, format_value, objective_label
from regard.core.formatting import format_duration
from regard.pipeline.cli import error_records, terminal
from regard.pipeline.cli.options import (
    ConfigArgument,
    JsonOption,
    QuietOption,
    SetOption,
    VerboseOption,
    WaitOption,
    flag,
    option,
)
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.pipeline.cli.rendering.run_summary import print_failure
from regard.pipeline.config import load
from regard.pipeline.tuning import tune as tuning


def tune(
    config: ConfigArgument,
    out: Annotated[
        Path | None, option("--out -o", "FILE", "Output file.", "CONFIG.tuned.yaml")
    ] = None,
    force: Annotated[bool, flag("--force", "Overwrite an existing output file.")] = False,
    restart: Annotated[
        bool, flag("--restart", "Delete all trials of this pipeline first.")
    ] = False,
    values: SetOption = None,
    wait: WaitOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Search for the best values of the keys in the section tune.

    Writes a copy of the configuration, including its comments, with the best values.
    Trials are saved: to resume after a failure or Ctrl-C, or to run more trials, run
    the same command again.

    [bold]Examples[/bold]

      regard tune configs/quickstart.yaml

      regard tune configs/quickstart.yaml -o configs/better.yaml

    [bold]Exit status[/bold]: 0 success; 1 a node failed; 2 invalid input or too many
    failed trials; 130 interrupted.
    """
    loaded = load(config, options=values or ())
    console = terminal.work_console(as_json, quiet)
    display = TerminalDisplay(console, verbose)
    result = tuning.tune(loaded, display, out, force=force, restart=restart, wait=wait)
    outcome, table = result.run.outcome, result.table
    if table is None and as_json:
        terminal.print_json({**result.run.summary, **error_records.of_outcome(outcome)})
    elif table is None:
        command = ["regard", "tune", *loaded.origin.arguments]
        if out:
            command += ["-o", str(out)]
        log = str(result.run.run.log)
        print_failure(outcome, log, terminal.failure_console(console), shlex.join(command))
    elif as_json:
        content = {"file": str(result.file), "values": result.values, **table}
        terminal.print_json({**content, "table": result.table_path})
    else:
        _show_table(table, result.table_path, result.file, console)
    raise typer.Exit(outcome.exit_status)


def _show_table(table: TrialTable, table_path: str, path: Path, console: Console) -> None:
    keys = list(table["trials"][0]["values"])
    rows = []
    for row in table["trials"]:
        source = row["continued_from"]
        rows.append(
            [
                str(row["trial"]) if source is None else f"{row['trial']} (from {source})",
                row["state"] if row["score"] is None else f"{row['score']:.4f}",
                *(format_value(row["values"][key]) for key in keys),
                str(row["epochs"] or ""),
                format_duration(row["seconds"]) if row["seconds"] else "",
                row["error"],
            ]
        )
    console.print()
    label = objective_label(table["objective"])
    terminal.print_table(["trial", label, *keys, "epochs", "training", ""], rows, console)
    console.print()
    command = f"regard run {shlex.quote(str(path))}"
    terminal.print_fields([("best", str(path)), ("table", table_path), ("next", command)], console)
