"""Resolve requirements.in into lock.txt, the other .in files into their own; run by `make lock`.

Existing pins stay unless another version is required. ``--upgrade`` upgrades all packages,
``--upgrade-package NAME`` upgrades one.
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

# The lock file is for glibc < 2.39, for which all packages have wheels for Python 3.11 only.
PYTHON = "3.11"
PLATFORM = "x86_64-manylinux_2_36"
# Sources and lock files.
LOCKS = {
    "requirements.in": "lock.txt",
    "cuda.in": "cuda.txt",
    "jax-cuda.in": "jax-cuda.txt",
    "docs.in": "docs.txt",
}
# These are installed into the environment of lock.txt.
ADDITIONS = ("docs.in", "jax-cuda.in")


def command(output: Path, extra: list[str], source: str = "requirements.in") -> list[str]:
    """The uv command that resolves into ``output`` and prefers its pins."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        sys.exit("uv is not installed. Use `make lock`, or run: pip install uv")
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
    if source in ADDITIONS:
        flags += ["--constraint", str(output.with_name("lock.txt")), "--no-annotate"]
    return [uv, "pip", "compile", *flags, *flat, *extra, source]


def changes(old: str, new: str) -> list[str]:
    """The differences between two lock files, one line per package."""
    pattern = re.compile(r"^([\w.-]+)==([^ \\\n]+)", re.MULTILINE)
    old_pins, new_pins = dict(pattern.findall(old)), dict(pattern.findall(new))
    return [
        f"{name}: {old_pins.get(name, 'absent')} -> {new_pins.get(name, 'absent')}"
        for name in sorted(old_pins.keys() | new_pins.keys())
        if old_pins.get(name) != new_pins.get(name)
    ]


def main() -> None:
    """Resolve into temporary files, then rename them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="upgrade all packages")
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
                sys.exit(f"relock: uv could not resolve {source}. The lock files are unchanged.")
            lines += changes(old, output.read_text(encoding="utf-8"))
        for name in LOCKS.values():
            os.replace(Path(folder) / name, HERE / name)
    print("\n".join(lines) if lines else "requirements: no changes.")


if __name__ == "__main__":
    main()
