"""Run the search of a configuration, and write the configuration with the best values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from regard.components.tuner.dimensions import dimensions
from regard.components.tuner.trial_table import TrialRow, TrialTable
from regard.core.errors import ConfigError
from regard.pipeline.config import Config
from regard.pipeline.config.config import TUNER
from regard.pipeline.runs.launch import Display, RunRequest, RunResult, run_pipeline
from regard.pipeline.tuning.tuned_config import (
    OriginalConfig,
    check_output,
    output_path,
    write_tuned_config,
)


@dataclass(frozen=True)
class TuneResult:
    """A completed search.

    Attributes:
        file: The configuration with the best values.
        run: The run that searched.
        table: The trials, the best one first, and how they were made; None if the run failed.
        table_path: The file of the table.
    """

    file: Path
    run: RunResult
    table: TrialTable | None = field(default=None, repr=False)
    table_path: str = field(default="", repr=False)

    @property
    def trials(self) -> Sequence[TrialRow]:
        """The trials, the best one first, with ``values``, ``score`` and so on."""
        return [] if self.table is None else self.table["trials"]

    @property
    def values(self) -> Mapping[str, JsonValue]:
        """The best values, by key."""
        return self.trials[0]["values"] if self.trials else {}


def tune(
    config: Config,
    display: Display,
    out: Path | None = None,
    *,
    force: bool = False,
    restart: bool = False,
    wait: bool = False,
) -> TuneResult:
    """Search the best values of the keys in the section ``tune``, and write them to a file.

    Args:
        config: The configuration; its file is copied with its comments.
        display: Shows the progress.
        out: The file to write; None: NAME.tuned.yaml next to the configuration.
        force: Whether to overwrite an existing file.
        restart: Whether to remove all earlier trials of the pipeline.
        wait: Whether to wait for another run of the pipeline to end.

    Raises:
        UserError: The configuration has no section ``tune``, the file cannot be written, or too
            many trials failed.
    """
    original = OriginalConfig.of(config)
    if config.tune is None:
        remedy = (
            "Add one, for example tune: {search_space: {training.learning_rate: {log: "
            "[0.0001, 0.01]}}}. `regard config reference` shows all keys."
        )
        where = f"{config.origin.file}: tune".removeprefix(": ")
        raise ConfigError("The configuration has no section tune.", where, remedy)
    path = output_path(original.path, out, force)
    check_output(
        original, path, {d.key: d.test_values()[0] for d in dimensions(config.tune, config)}
    )
    request = RunRequest(config, TUNER if restart else None, TUNER, wait=wait, tune=True)
    run = run_pipeline(request, display)
    if run.outcome.exit_status != 0:
        return TuneResult(path, run)
    table_path = Path(run.progress.outputs(TUNER)["tuner_results"]) / "trials.json"
    table: TrialTable = json.loads(table_path.read_text(encoding="utf-8"))
    write_tuned_config(original, path, table, str(table_path))
    return TuneResult(path, run, table, str(table_path))
