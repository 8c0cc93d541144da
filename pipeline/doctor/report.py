"""The report of ``regard doctor``: whether this machine can run Regard, and what to fix.

Versions are read from package metadata, so that the doctor also works where TensorFlow does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from regard.pipeline.doctor import checks, gpus, machine
from regard.pipeline.doctor.checks import KNOWN_GOOD, SHIM, Check, installed_version
from regard.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "fail": "[red]✗[/]"}


def run_checks(environ: Mapping[str, str] | None = None) -> list[Check]:
    """Check the installation, the packages, the machine and the environment variables."""
    environ = os.environ if environ is None else environ
    libc = machine.glibc()
    shim = installed_version(SHIM)
    way = "lock" if shim and machine.install_way(libc) == "index" else machine.install_way(libc)
    home = Workspace.from_environment(environ).home
    results = [checks.check_way(libc, way), checks.check_python(sys.version_info[:3], way)]
    results += [checks.check_package(name, installed_version(name), way) for name in KNOWN_GOOD]
    if way == "lock":
        results.append(checks.check_shim(shim))
    if installed_version("pyfarmhash") is None:
        results.append(checks.check_compiler(machine.compiler(), machine.has_python_headers()))
    return [
        *results,
        checks.check_cores(machine.cores()),
        checks.check_memory(*machine.memory()),
        checks.check_cpu(machine.cpu_flags()),
        gpus.check(gpus.detect(), way),
        checks.check_disk(home, machine.free_disk(home)),
        checks.check_home(home),
        checks.check_data(environ.get("REGARD_DATA")),
        *checks.check_environment(environ),
    ]


def exit_status(results: list[Check]) -> int:
    """0 if pipelines can run on this machine, otherwise 2."""
    return 2 if any(check.status == "fail" for check in results) else 0


def to_json(results: list[Check]) -> dict[str, Any]:
    """The report for ``--json``: the worst status, and each check."""
    worst = max((check.status for check in results), key=list(MARKS).index, default="ok")
    return {"status": worst, "checks": [asdict(check) for check in results]}


def render(results: list[Check], console: Console) -> None:
    """Print a table of the checks, then the remedies, failures first."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    good = [check for check in results if check.name in KNOWN_GOOD and check.status == "ok"]
    for check in results:
        if check not in good:
            table.add_row(MARKS[check.status], check.name, escape(check.detail))
        elif check is good[0]:
            text = f"{len(good)} of {len(KNOWN_GOOD)} key packages have a tested version"
            table.add_row(MARKS["ok"], "packages", text)
    console.print(table)
    problems = sorted((c for c in results if c.remedy), key=lambda check: check.status)
    for check in problems:
        console.print(f"\n{MARKS[check.status]} [bold]{check.name}[/]: {escape(check.detail)}")
        console.print(f"  {escape(check.remedy or '')}", highlight=False)
    if not problems:
        console.print("\n[green]This machine meets all requirements.[/]")
