"""``regard drift``: compare logged requests with the training data."""

from pathlib import Path
from typing import Annotated

import typer

from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonOption, ModelArgument, RegistryOption, option
from regard.pipeline.prediction.request_drift import measure
from regard.pipeline.workspace import Workspace

_DRIFT = 3
_LABELS = {
    "drift_words": "words of ",
    "drift_oov": "new words of ",
    "drift_lengths": "lengths of ",
    "drift_confidence": "",
}


def drift(
    model: ModelArgument,
    logs: Annotated[
        list[Path], option("--log", "FILE", "Log of `regard serve --log-requests`; repeatable.")
    ],
    hours: Annotated[
        float, option("--since", "HOURS", "Ignore earlier requests.", "no limit", min=0, max=1e6)
    ] = 1e6,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare logged requests with the data that a version was trained on.

    The limits are data.checks.drift_words, drift_oov and drift_lengths of the version's
    configuration, and serving.confidence.max_drift. Words are compared if the log has texts
    (--log-texts). Rotated files of a log are read as well.

    [bold]Example[/bold]

      regard drift quickstart --log requests.jsonl --since 24

    [bold]Exit status[/bold]: 0 no drift; 3 above a limit; 2 user error.
    """
    root = registry or Workspace.from_environment().registry
    findings, lines = measure(model, root, logs, hours)
    rows = []
    for name, check in findings["checks"].items():
        for feature, finding in check["features"].items():
            verdict, words = "ok", ""
            if finding["value"] > check["limit"]:
                verdict = "drift"
                words = ", ".join(example["word"] for example in finding.get("examples", [])[:5])
            value = f"{finding['value']:.3f}"
            rows.append((_LABELS[name] + feature, value, f"{check['limit']:g}", verdict, words))
    if as_json:
        terminal.print_json({**findings, "lines": lines})
    else:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in lines.items())
        terminal.print_lines(f"{findings['version']}: {counts}")
        terminal.print_table(("", "value", "limit", "verdict", "mainly"), rows, terminal.out())
    raise typer.Exit(_DRIFT if any(verdict == "drift" for *_, verdict, _ in rows) else 0)
