"""The report of ``regard doctor``: whether this machine can run Regard, and what to fix.

Versions are read from package metadata, so that the doctor also works where TensorFlow does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING

from regard.core.errors import EnvironmentFault, UserError
from regard.core.processor import count_cores, read_features
from regard.pipeline.doctor import backends, checks, gpus, machine
from regard.pipeline.doctor.checks import SHIM, Check, installed_version
from regard.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "fail": "[red]✗[/]"}


def run_checks(environ: Mapping[str, str] = os.environ) -> list[Check]:
    """Check the installation, the packages, the machine and the environment variables."""
    libc = machine.glibc()
    shim = installed_version(SHIM)
    way = "lock" if shim and machine.install_way(libc) == "index" else machine.install_way(libc)
    home = Workspace.from_environment(environ).home
    return [
        checks.check_installation(libc, way, shim),
        checks.check_python(sys.version_info[:3]),
        *checks.check_packages(_requirements()),
        checks.check_processor(count_cores(), read_features()),
        checks.check_memory(*machine.memory()),
        gpus.check(way),
        *backends.check(),
        checks.check_home(home, machine.free_disk(home)),
        *checks.check_environment(environ),
    ]


def _requirements() -> list[str]:
    try:
        return metadata.requires("regard") or []
    except metadata.PackageNotFoundError:
        return ["regard"]


def exit_status(results: list[Check]) -> int:
    """Return 0 if pipelines can run on this machine, otherwise 2."""
    return 2 if any(check.status == "fail" for check in results) else 0


def to_json(results: list[Check]) -> dict[str, object]:
    """Return the report for ``--json``: the worst status, and each check."""
    worst = max((check.status for check in results), key=list(MARKS).index, default="ok")
    return {"status": worst, "checks": [asdict(check) for check in results]}


def failures(results: list[Check]) -> list[UserError]:
    """Return an error for each failed check."""
    return [
        EnvironmentFault(check.detail, remedy=check.remedy)
        for check in results
        if check.status == "fail"
    ]


def render(results: list[Check], console: Console) -> None:
    """Print a table of the checks, then the remedies, failures first."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in results:
        table.add_row(MARKS[check.status], check.name, escape(check.detail))
    console.print(table)
    problems = sorted((c for c in results if c.remedy), key=lambda check: check.status)
    for check in problems:
        console.print(f"\n{MARKS[check.status]} [bold]{check.name}[/]: {escape(check.detail)}")
        console.print(f"  {escape(check.remedy or '')}", highlight=False)
    if not problems:
        console.print("\n[green]This machine meets all requirements.[/]")
