"""Metrics that a command of the user computes: one number for each row."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import tempfile
import time
from typing import IO

from regard.components.common.child_process import describe_exit
from regard.components.common.errors import UserError
from regard.components.settings.evaluation import EvaluationConfig, ExternalMetricConfig
from regard.models.metrics import METRICS, MetricOptions, MetricSpec, Rows
from regard.models.metrics.base import Statistics, mean_statistics
from regard.models.plugins import Registry

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_POLL_SECONDS = 0.05
_MAX_BYTES = 64_000_000  # of standard output and of standard error
_MAX_LINES = 5  # of standard error, in a message


def metric_specs(config: EvaluationConfig) -> Registry[MetricSpec]:
    """Return all metrics, including those of ``evaluation.external``."""
    own = dict(METRICS.own)
    for name, metric in config.external.items():
        better, scale = metric.higher_is_better, metric.scale
        compute = functools.partial(_compute, name, metric)
        label = metric.label or name
        own[name] = MetricSpec(label, compute, "text", better, None, None, scale, False, True)
    return Registry(METRICS.group, own, MetricSpec)


def _compute(
    name: str, metric: ExternalMetricConfig, rows: Rows, options: MetricOptions
) -> Statistics:
    """Run the command once; samples, slices and tests use the numbers of the rows.

    Raises:
        UserError: the command fails, is too slow, or does not print a finite number per row.
    """
    sources = rows.columns.get("source", [""] * len(rows.hypotheses))
    with (
        tempfile.TemporaryFile() as table,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        for one in zip(sources, rows.hypotheses, rows.references, strict=True):
            texts = (text.translate(_ESCAPES) for text in (*one[:2], *one[2]))
            table.write("\t".join(texts).encode() + b"\n")
        table.seek(0)
        problem = _run(metric, table, output, errors)
        lines, log = _read_lines(output), _read_lines(errors)
    values = [_number(line) for line in lines]
    if not problem and len(values) != len(sources):
        problem = f"printed {len(values):,} lines for {len(sources):,} rows"
    elif not problem and not all(map(math.isfinite, values)):
        line = next(line for line, value in enumerate(values) if not math.isfinite(value))
        problem = f"printed {lines[line][:40]!r} instead of a finite number in line {line + 1:,}"
    if problem:
        message = "\n".join([f"The command {metric.command[0]} {problem}.", *log[-_MAX_LINES:]])
        remedy = "Correct the command, and run again: trained models are cached."
        raise UserError(message[:2000], f"evaluation.external.{name}.command", remedy)
    program = os.path.basename(metric.command[0])
    return mean_statistics(values, f"nrefs:{rows.reference_count()}|external:{program}")


def _read_lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return file.read().decode("utf-8", "replace").splitlines()


def _number(line: str) -> float:
    try:
        return float(line)
    except ValueError:
        return math.nan


def _run(
    metric: ExternalMetricConfig, table: IO[bytes], output: IO[bytes], errors: IO[bytes]
) -> str:
    """Run the command without a shell; return what went wrong, or an empty text.

    It belongs to the process group of the run, and ends with it.
    """
    try:
        process = subprocess.Popen(metric.command, stdin=table, stdout=output, stderr=errors)
    except (OSError, ValueError) as error:
        return f"cannot be started: {error}"
    end, status = time.monotonic() + metric.timeout, None
    try:
        while status is None:
            time.sleep(_POLL_SECONDS)
            status = process.poll()
            if max(os.fstat(file.fileno()).st_size for file in (output, errors)) > _MAX_BYTES:
                return f"printed more than {_MAX_BYTES:,} bytes"
            if status is None and time.monotonic() > end:
                return f"did not end within its timeout of {metric.timeout:g} seconds"
    finally:
        process.kill()
        process.wait()
    return describe_exit(status) if status else ""
