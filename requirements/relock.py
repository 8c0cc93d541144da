"""Resolves requirements.in again and writes lock.txt. Needs uv: `make lock` brings it.

Pins that are in lock.txt already stay as they are unless something asks for another version;
``--upgrade`` takes the newest of everything, ``--upgrade-package NAME`` of one package.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The lock serves glibc < 2.39, where only Python 3.11 has a wheel of every package.
PYTHON = "3.11"
PLATFORM = "x86_64-manylinux_2_36"


def command(output: Path, extra: list[str]) -> list[str]:
    """The call of uv that resolves into ``output``, whose present pins are preferred."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        sys.exit("uv is not installed. `make lock` brings its own; or: pip install uv")
    options = {
        "--python-version": PYTHON,
        "--python-platform": PLATFORM,
        "--override": "overrides.txt",
        "--excludes": "excludes.txt",
        "--output-file": str(output),
        "--custom-compile-command": "make lock",
    }
    flat = [part for pair in options.items() for part in pair]
    flags = ["--generate-hashes", "--no-config", "--no-emit-index-url", "--quiet"]
    return [uv, "pip", "compile", *flags, *flat, *extra, "requirements.in"]


def changes(old: str, new: str) -> list[str]:
    """What differs between two locks, a line a package."""
    pattern = re.compile(r"^([\w.-]+)==([^ \\\n]+)", re.MULTILINE)
    before, after = dict(pattern.findall(old)), dict(pattern.findall(new))
    return [
        f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def main() -> None:
    """Makes the lock in a temporary file, then renames it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest of everything")
    parser.add_argument("--upgrade-package", action="append", default=[], metavar="NAME")
    arguments = parser.parse_args()
    extra = ["--upgrade"] if arguments.upgrade else []
    for name in arguments.upgrade_package:
        extra += ["--upgrade-package", name]

    lock = HERE / "lock.txt"
    old = lock.read_text(encoding="utf-8") if lock.exists() else ""
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".relock-") as folder:
        output = Path(folder) / "lock.txt"
        output.write_text(old, encoding="utf-8")
        if subprocess.run(command(output, extra), cwd=HERE).returncode != 0:
            sys.exit("relock: uv could not resolve it (see above); lock.txt is as it was.")
        new = output.read_text(encoding="utf-8")
        os.replace(output, lock)
    lines = changes(old, new)
    print("\n".join(lines) if lines else "requirements/lock.txt: nothing changed.")


if __name__ == "__main__":
    main()
