"""``regard run``: run a pipeline and show its progress."""

import shlex
from typing import Annotated, Literal

import typer

from regard.pipeline.cli import error_records, terminal
from regard.pipeline.cli.completion import complete_node
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
from regard.pipeline.cli.rendering.run_summary import print_result
from regard.pipeline.config import load
from regard.pipeline.runs.launch import RunRequest, run_pipeline


def run(
    config: ConfigArgument,
    first: Annotated[
        str | None,
        option(
            "--from",
            "NODE",
            "Run this node and all later ones again.",
            autocompletion=complete_node,
        ),
    ] = None,
    last: Annotated[
        str | None, option("--to", "NODE", "Stop after this node.", autocompletion=complete_node)
    ] = None,
    runner: Annotated[
        Literal["local", "beam"], option("--runner", "RUNNER", "Pipeline runner: local or beam.")
    ] = "local",
    publish_anyway: Annotated[
        bool, flag("--publish-anyway", "Publish the model even if it does not pass evaluation.")
    ] = False,
    values: SetOption = None,
    wait: WaitOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run a pipeline: prepare data, train, evaluate and publish a model.

    Completed steps are cached. To resume after a failure or Ctrl-C, run the same
    command again.

    [bold]Examples[/bold]

      regard run configs/quickstart.yaml

      regard run configs/quickstart.yaml --from Trainer

      regard run configs/quickstart.yaml --to ExampleValidator

      regard run configs/quickstart.yaml --set training.max_epochs=3

    [bold]Exit status[/bold]: 0 success; 1 a node failed; 2 invalid input or a full disk;
    3 success, but the model did not pass evaluation; 130 interrupted.
    """
    console = terminal.work_console(as_json, quiet)
    loaded = load(config, options=values or ())
    request = RunRequest(loaded, first, last, runner, wait, publish_anyway=publish_anyway)
    result = run_pipeline(request, TerminalDisplay(console, verbose, has_summary=not as_json))
    if as_json:
        terminal.print_json({**result.summary, **error_records.of_outcome(result.outcome)})
    else:
        print_result(result, console, shlex.join(["regard", "run", *loaded.origin.arguments]))
    raise typer.Exit(result.outcome.exit_status)
