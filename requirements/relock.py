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
# The lock files: what running needs, TensorFlow for both kinds of machines, additions. The source
# of NAME.txt is NAME.in, and that of the first one requirements.in.
MAIN = "lock.txt"
TENSORFLOW = ("cpu.txt", "cuda.txt")
ADDITIONS = ("extras.txt", "dev.txt", "jax-cuda.txt", "docs.txt")
LOCKS = (MAIN, *TENSORFLOW, *ADDITIONS, "uv.txt")


def command(output: Path, extra: list[str]) -> list[str]:
    """The uv command that resolves into ``output`` and prefers its pins."""
    name = output.name
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        sys.exit("uv is not installed. Use `make lock`, or run: pip install uv")
    options = {
        "--python-version": PYTHON,
        "--python-platform": PLATFORM,
        "--override": "overrides.txt",
        "--output-file": str(output),
        "--custom-compile-command": "make lock",
    }
    flat = [part for pair in options.items() for part in pair]
    flags = ["--generate-hashes", "--no-config", "--no-emit-index-url", "--quiet"]
    if name in TENSORFLOW:
        flags += ["--no-deps"]
    else:
        flags += ["--excludes", "excludes.txt", "--excludes", "excludes-tensorflow.txt"]
    if name == MAIN:
        flags += ["--excludes", "excludes-run.txt"]
        flags += ["--no-emit-package", "tensorflow-cpu"]  # only what it requires
    if name in ADDITIONS:
        flags += ["--constraint", str(output.with_name(MAIN)), "--no-annotate"]
        if name != "extras.txt":
            flags += ["--constraint", str(output.with_name("extras.txt"))]
    source = "requirements.in" if name == MAIN else f"{output.stem}.in"
    return [uv, "pip", "compile", *flags, *flat, *extra, source]


def without_pins(text: str, other: str) -> str:
    """A lock file without the packages of another one."""
    pins = {block.split()[0] for block in blocks(other)[1:]}
    return "".join(block for block in blocks(text) if block.split()[0] not in pins)


def blocks(text: str) -> list[str]:
    """The head of a lock file, which is a comment, and its packages with their hashes."""
    return re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)


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
        for name in LOCKS:
            lock, output = HERE / name, Path(folder) / name
            old = lock.read_text(encoding="utf-8") if lock.exists() else ""
            output.write_text(old, encoding="utf-8")
            if subprocess.run(command(output, extra), cwd=HERE).returncode != 0:
                sys.exit(f"relock: uv could not resolve {name}. The lock files are unchanged.")
            new = output.read_text(encoding="utf-8")
            if name in ADDITIONS:
                new = without_pins(new, output.with_name(MAIN).read_text(encoding="utf-8"))
                output.write_text(new, encoding="utf-8")
            lines += changes(old, new)
        for name in LOCKS:
            os.replace(Path(folder) / name, HERE / name)
    print("\n".join(lines) if lines else "requirements: no changes.")


if __name__ == "__main__":
    main()
