"""Metrics that a command of the user computes: one number for each row."""

import functools
import itertools
import math
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import IO

from regard.components.settings.evaluation import EvaluationConfig, ExternalMetricConfig
from regard.core.errors import UserError
from regard.core.kinds import TEXT
from regard.core.plugins import PluginTable
from regard.core.processes import describe_exit
from regard.models.metrics import METRICS, MetricOptions, MetricSpec, Rows
from regard.models.metrics.base import Statistics, mean_statistics

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_POLL_SECONDS = 0.05
_MAX_BYTES = 64_000_000  # of standard output and of standard error
_MAX_LINES = 5  # of standard error, in a message


# The numbers of the rows by metric.
RowNumbers = Mapping[str, Sequence[float]]


def metric_specs(
    config: EvaluationConfig, numbers: RowNumbers | None = None
) -> PluginTable[MetricSpec]:
    """Return all metrics, including those of ``evaluation.external``.

    Args:
        config: the section.
        numbers: what `run_commands` returned for these rows; None: each metric runs its command.
    """
    specs = dict(METRICS.own)
    for name, metric in config.external.items():
        specs[name] = MetricSpec(
            label=metric.label or name,
            compute=functools.partial(_compute, name, metric, (numbers or {}).get(name)),
            output_kind=TEXT.name,
            higher_is_better=metric.higher_is_better,
            low=None,
            high=None,
            scale=metric.scale,
            needs_columns=True,
        )
    return PluginTable(METRICS.group, specs, MetricSpec)


def run_commands(
    config: EvaluationConfig, names: Sequence[str], models: Mapping[str, Rows]
) -> dict[str, dict[str, list[float]]]:
    """Run the command of each external metric once for the rows of all models.

    A learned metric is loaded once, and forms its batches of all rows.

    Args:
        config: the section.
        names: the metrics; those that are not external are ignored.
        models: the rows by model.

    Returns:
        The numbers of the rows by model and metric.

    Raises:
        UserError: a command fails, is too slow, or does not print a finite number per row.
    """
    numbers: dict[str, dict[str, list[float]]] = {model: {} for model in models}
    for name in names:
        if name in config.external:
            rest = iter(_row_numbers(name, config.external[name], list(models.values())))
            for model, rows in models.items():
                numbers[model][name] = list(itertools.islice(rest, len(rows.hypotheses)))
    return numbers


def _compute(
    name: str,
    metric: ExternalMetricConfig,
    numbers: Sequence[float] | None,
    rows: Rows,
    _: MetricOptions,
) -> Statistics:
    """Return the statistics of the rows; samples, slices and tests use their numbers."""
    if numbers is None:
        numbers = _row_numbers(name, metric, [rows])
    program = os.path.basename(metric.command[0])
    return mean_statistics(numbers, f"nrefs:{rows.reference_count()}|external:{program}")


def _row_numbers(name: str, metric: ExternalMetricConfig, models: Sequence[Rows]) -> list[float]:
    """Run the command, and return the numbers of the rows, those of the first model first."""
    program = os.path.basename(metric.command[0])
    count = sum(len(rows.hypotheses) for rows in models)
    with TemporaryFile() as table, TemporaryFile() as output, TemporaryFile() as errors:
        for rows in models:
            sources = rows.columns.get("source", [""] * len(rows.hypotheses))
            cells = zip(sources, rows.hypotheses, rows.references, strict=True)
            for source, hypothesis, references in cells:
                texts = [text.translate(_ESCAPES) for text in (source, hypothesis, *references)]
                table.write("\t".join(texts).encode() + b"\n")
        table.seek(0)
        problem = _run(metric, table, output, errors)
        lines, log = _read_lines(output), _read_lines(errors)
    values = [_number(line) for line in lines]
    wrong = [line for line, value in enumerate(values) if not math.isfinite(value)]
    if not problem and len(values) != count:
        problem = f"printed {len(values):,} lines for {count:,} rows"
    elif not problem and wrong:
        problem = f"printed {lines[wrong[0]][:40]!r} in line {wrong[0] + 1:,}, no finite number"
    if problem:
        message = "\n".join([f"The command {program} {problem}.", *log[-_MAX_LINES:]])
        remedy = "Correct the command, and run again: trained models are cached."
        raise UserError(message[:2000], f"evaluation.external.{name}.command", remedy)
    return values


def _read_lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return file.read().decode("utf-8", "replace").splitlines()


def _number(line: str) -> float:
    try:
        return float(line)
    except ValueError:
        return math.nan


def _run(metric: ExternalMetricConfig, table: IO[bytes], *streams: IO[bytes]) -> str:
    """Run the command without a shell; return what went wrong, or an empty text.

    It belongs to the process group of the run, and ends with it.
    """
    output, errors = streams
    try:
        process = subprocess.Popen(metric.command, stdin=table, stdout=output, stderr=errors)
    except (OSError, ValueError) as error:
        return f"cannot be started: {error}"
    end = time.monotonic() + metric.timeout
    try:
        while process.poll() is None and time.monotonic() < end:
            if any(os.fstat(file.fileno()).st_size > _MAX_BYTES for file in streams):
                return f"printed more than {_MAX_BYTES:,} bytes"
            time.sleep(_POLL_SECONDS)
        status = process.poll()
    finally:
        process.kill()
        process.wait()
    if status is None:
        return f"did not end within its timeout of {metric.timeout:g} seconds"
    return describe_exit(status) if status else ""
