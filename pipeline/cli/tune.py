"""``regard tune``: search for better values, and write them to a new configuration."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from regard.components.tuner.dimensions import dimensions
from regard.components.tuner.trial_table import TrialTable, format_value, objective_label
from regard.core.errors import UserError
from regard.core.formatting import format_duration
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import ConfigArgument, JsonOption, WaitOption, flag, option
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.pipeline.cli.rendering.run_summary import print_failure
from regard.pipeline.config.config import TUNER
from regard.pipeline.runs.launch import RunRequest, run_pipeline
from regard.pipeline.tuning import tuned_config


def tune(
    config: ConfigArgument,
    out: Annotated[
        Path | None, option("--out -o", "FILE", "Output file.", "CONFIG.tuned.yaml")
    ] = None,
    force: Annotated[bool, flag("--force", "Overwrite an existing output file.")] = False,
    restart: Annotated[
        bool, flag("--restart", "Delete all trials of this pipeline first.")
    ] = False,
    wait: WaitOption = False,
    as_json: JsonOption = False,
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
    original = tuned_config.OriginalConfig.read(config)
    section = original.config.tune
    if section is None:
        remedy = (
            "Add one, for example tune: {search_space: {training.learning_rate: {log: "
            "[0.0001, 0.01]}}}. `regard config reference` shows all keys."
        )
        raise UserError("The configuration has no section tune.", where=str(config), remedy=remedy)
    path = tuned_config.output_path(config, out, force)
    values = {d.key: d.test_values()[0] for d in dimensions(section, original.config)}
    tuned_config.check_output(original, path, values)

    console = terminal.err() if as_json else terminal.out()
    request = RunRequest(config, TUNER if restart else None, TUNER, wait=wait, tune=True)
    result = run_pipeline(request, TerminalDisplay(console))
    if result.outcome.exit_status == 0:
        table_path = str(Path(result.progress.outputs(TUNER)["tuner_results"]) / "trials.json")
        table: TrialTable = json.loads(Path(table_path).read_text(encoding="utf-8"))
        tuned_config.write_tuned_config(original, path, table, table_path)
        if as_json:
            values = table["trials"][0]["values"]
            content = {"file": str(path), "values": values, **table, "table": table_path}
            terminal.print_json(content)
        else:
            _show_table(table, table_path, path)
    else:
        command = ["regard", "tune", str(config)]
        if out:
            command += ["-o", str(out)]
        print_failure(result.outcome, str(result.run.log), console, shlex.join(command))
    raise typer.Exit(result.outcome.exit_status)


def _show_table(table: TrialTable, table_path: str, path: Path) -> None:
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
    console = terminal.out()
    console.print()
    label = objective_label(table["objective"])
    terminal.print_table(["trial", label, *keys, "epochs", "training", ""], rows, console)
    console.print()
    command = f"regard run {shlex.quote(str(path))}"
    terminal.print_fields([("best", str(path)), ("table", table_path), ("next", command)], console)
