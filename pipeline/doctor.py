"""What `regard doctor` finds: is this machine able to run Regard, and if not, what to do.

Imports nothing heavy: versions come from the packages' metadata, so that the doctor also works
where TensorFlow does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pipeline import checkups, gpus, machine
from pipeline.checkups import KNOWN_GOOD, SHIM, Check, installed
from pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "fail": "[red]✗[/]"}


def report(environ: Mapping[str, str] | None = None) -> list[Check]:
    """Looks at the installation, the packages, the machine and the settings."""
    environ = os.environ if environ is None else environ
    libc = machine.glibc()
    shim = installed(SHIM)
    way = "lock" if shim and machine.install_way(libc) == "index" else machine.install_way(libc)
    versions = {name: installed(name) for name in KNOWN_GOOD}
    home = Workspace.from_environment(environ).home
    checks = [checkups.check_way(libc, way), checkups.check_python(sys.version_info[:3], way)]
    checks += [checkups.check_package(name, found, way) for name, found in versions.items()]
    if way == "lock":
        checks.append(checkups.check_shim(shim))
    if installed("pyfarmhash") is None:
        checks.append(checkups.check_compiler(machine.compiler(), machine.python_headers()))
    checks += [
        checkups.check_cores(machine.cores()),
        checkups.check_memory(*machine.memory()),
        checkups.check_cpu(machine.cpu_flags()),
        gpus.check(gpus.look(), way),
        checkups.check_disk(home, machine.disk_free(home)),
        checkups.check_home(home),
        checkups.check_data(environ.get("REGARD_DATA")),
        *checkups.check_environment(environ),
    ]
    return checks


def exit_status(checks: list[Check]) -> int:
    """0 if the pipeline can run here, else 2."""
    return 2 if any(check.status == "fail" for check in checks) else 0


def as_json(checks: list[Check]) -> dict[str, Any]:
    """The report for `--json`: the worst status, and each check."""
    worst = max((check.status for check in checks), key=list(MARKS).index, default="ok")
    return {"status": worst, "checks": [asdict(check) for check in checks]}


def render(checks: list[Check], console: Console) -> None:
    """Draws the report: a table of the checks, then the remedies in order of weight."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    well = [check for check in checks if check.name in KNOWN_GOOD and check.status == "ok"]
    for check in checks:
        if check not in well:
            table.add_row(MARKS[check.status], check.name, escape(check.found))
        elif check is well[0]:
            found = f"{len(well)} of {len(KNOWN_GOOD)} key packages at releases known to work"
            table.add_row(MARKS["ok"], "packages", found)
    console.print(table)
    ill = sorted((c for c in checks if c.remedy), key=lambda check: check.status)  # fail < warn
    for check in ill:
        console.print(f"\n{MARKS[check.status]} [bold]{check.name}[/]: {escape(check.found)}")
        console.print(f"  {escape(check.remedy or '')}", highlight=False)
    if not ill:
        console.print("\n[green]Everything that Regard needs is here.[/]")
