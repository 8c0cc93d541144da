"""Resolves requirements.in into lock.txt, and cuda.in into cuda.txt. `make lock` brings uv.

Pins that are there already stay as they are unless something asks for another version;
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
# What is resolved, and into what.
LOCKS = {"requirements.in": "lock.txt", "cuda.in": "cuda.txt"}


def command(output: Path, extra: list[str], source: str = "requirements.in") -> list[str]:
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
    return [uv, "pip", "compile", *flags, *flat, *extra, source]


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
    """Makes the locks in temporary files, then renames them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest of everything")
    parser.add_argument("--upgrade-package", action="append", default=[], metavar="NAME")
    arguments = parser.parse_args()
    extra = ["--upgrade"] if arguments.upgrade else []
    for name in arguments.upgrade_package:
        extra += ["--upgrade-package", name]

    lines = []
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".relock-") as folder:
        for source, name in LOCKS.items():
            lock, output = HERE / name, Path(folder) / name
            old = lock.read_text(encoding="utf-8") if lock.exists() else ""
            output.write_text(old, encoding="utf-8")
            if subprocess.run(command(output, extra, source), cwd=HERE).returncode != 0:
                sys.exit(f"relock: uv could not resolve {source} (see above); all is as it was.")
            lines += changes(old, output.read_text(encoding="utf-8"))
        for name in LOCKS.values():
            os.replace(Path(folder) / name, HERE / name)
    print("\n".join(lines) if lines else "requirements: nothing changed.")


if __name__ == "__main__":
    main()
