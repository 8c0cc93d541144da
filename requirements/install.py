"""Makes the virtual environment that the Makefile works with; `make install` runs it.

It needs nothing installed. It picks one of two ways and says which: from the index (glibc >=
2.39), or from lock.txt with its hashes and the shim (older ones, Python 3.11). The stamp inside
the environment is written last: without it the environment is half made, and made anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STAMP = "regard-install.json"

# What pip says -> what to do about it. The first that is found in the log counts.
REMEDIES = [
    (r"No space left", "Make room: the environment takes 4 GB; TMPDIR needs 2 GB meanwhile."),
    (r"ensurepip is not\s+available", "Install venv: apt-get install python3-venv"),
    (
        r"g\+\+|gcc.*failed|Python\.h|wheel for pyfarmhash",
        "Install a compiler and Python's headers: apt-get install g++ python3-dev",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "The index serves other files than the lock names: `pip cache purge`, then try again.",
    ),
    (
        r"ConnectionError|NewConnectionError|Read timed out|ProxyError|SSLError|"
        r"Temporary failure in name resolution",
        "The package index cannot be reached: check the network, HTTPS_PROXY and PIP_INDEX_URL.",
    ),
    (
        r"No matching distribution|Could not find a version",
        "The package index lacks a file for this Python and this system: check PIP_INDEX_URL.",
    ),
]


def fail(message: str, remedy: str) -> None:
    """Ends the installation with what was wrong and what to do."""
    sys.exit(f"make install: {message}\n  {remedy}")


def choose(requested: str) -> tuple[str, str]:
    """The way to install and the reason, or an end where there is none."""
    if sys.version_info < (3, 10) or sys.version_info >= (3, 14):
        found = ".".join(map(str, sys.version_info[:3]))
        fail(f"this is Python {found}", "Use 3.10 to 3.13: make install PYTHON=python3.11")
    sys.path.insert(0, str(ROOT))
    from pipeline import machine  # needs the Python that was just checked

    libc = machine.glibc()
    way = machine.install_way(libc)
    if way == "none" or libc is None:
        fail(
            "TFX has wheels for Linux with glibc on x86_64 only",
            "Use a container, such as debian:13 or ubuntu:24.04.",
        )
    release = ".".join(map(str, libc or ()))
    reason = f"glibc {release} {'is older than 2.39' if way == 'lock' else 'has every wheel'}"
    if requested != "auto":
        way, reason = requested, "as asked"
    if way == "lock" and sys.version_info[:2] != (3, 11):
        found = ".".join(map(str, sys.version_info[:3]))
        fail(
            f"{reason}, so the lock is used, and it is for Python 3.11; this is {found}",
            "apt-get install python3.11 python3.11-venv, then: make install PYTHON=python3.11",
        )
    return way, reason


def wanted(way: str) -> dict[str, str]:
    """What the stamp says of an environment that is as it should be."""
    sources = [HERE / "lock.txt", *sorted((HERE / "tfx-bsl-sql-util").rglob("*.py"))]
    if way == "index":
        sources = [ROOT / "setup.py"]
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes())
    python = ".".join(map(str, sys.version_info[:2]))
    return {"way": way, "python": python, "root": str(ROOT), "packages": digest.hexdigest()}


class Installation:
    """One environment being made; everything that pip says goes to the log."""

    def __init__(self, environment: Path, log: Path):
        self.environment = environment
        self.python = environment / "bin" / "python"
        self.log = log
        log.write_bytes(b"")

    def run(self, command: list[str], total: int = 0) -> None:
        """Runs one command; shows how far pip is if someone is watching."""
        variables = {
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "PIP_PROGRESS_BAR": "off",
            "PYTHONUNBUFFERED": "1",
        }
        seen = 0
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            with subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            ) as process:
                for line in process.stdout or ():
                    log.write(line)
                    log.flush()
                    if line.startswith(("Collecting ", "Installing collected")):
                        seen += 1
                        self.show(line, seen, total)
        self.show("", 0, 0)
        if process.returncode != 0:
            self.explain()

    def pip(self, *arguments: str, total: int = 0) -> None:
        """Runs the environment's own pip."""
        self.run([str(self.python), "-m", "pip", *arguments], total)

    def show(self, line: str, seen: int, total: int) -> None:
        """One line that is written over and over, on a terminal only."""
        if not sys.stdout.isatty():
            return
        text = ""
        if line.startswith("Collecting "):
            name = re.split(r"[=<>~! \[(]", line.split()[1])[0]
            text = f"  {seen}{f'/{total}' if total else ''} {name}"
        elif line:
            text = "  unpacking and compiling"
        print(f"\r\033[K{text}", end="", flush=True)

    def explain(self) -> None:
        """Ends with the log's last lines and, where the cause is known, the remedy."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if not line.startswith("WARNING: Location")]
        print("\n".join(lines[-15:]), file=sys.stderr)
        known = (remedy for pattern, remedy in REMEDIES if re.search(pattern, text))
        fail(f"failed; all of it is in {self.log}", next(known, "Mend that, then try again."))

    def create(self) -> None:
        """An empty environment, in the place of whatever is there."""
        (self.environment / STAMP).unlink(missing_ok=True)  # first: a kill from here on counts
        if self.environment.is_symlink() or self.environment.is_file():
            self.environment.unlink()
        shutil.rmtree(self.environment, ignore_errors=True)
        self.run([sys.executable, "-m", "venv", str(self.environment)])

    def everything(self, way: str) -> None:
        """All packages, and Regard itself."""
        if way == "index":
            self.pip("install", "--editable", ".[dev]")
            return
        lock = HERE / "lock.txt"
        total = len(re.findall(r"^[\w.-]+==", lock.read_text(encoding="utf-8"), re.MULTILINE))
        self.pip("install", "--no-deps", "--require-hashes", "-r", str(lock), total=total)
        # From a copy: building leaves files beside the sources.
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "shim"
            shutil.copytree(HERE / "tfx-bsl-sql-util", copy)
            self.pip("install", "--no-deps", "--no-build-isolation", "--use-pep517", str(copy))
        self.project()

    def project(self) -> None:
        """Regard itself, editable: the command follows the sources."""
        flags = ["--no-deps", "--no-build-isolation", "--use-pep517"]
        self.pip("install", *flags, "--editable", ".")


def main() -> None:
    """Makes or refreshes the environment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("environment", type=Path, help="the folder of the virtual environment")
    parser.add_argument("--way", choices=["auto", "lock", "index"], default="auto")
    arguments = parser.parse_args()
    way, reason = choose(arguments.way)
    environment = arguments.environment.absolute()
    stamp = environment / STAMP
    present = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else None
    installation = Installation(environment, environment.with_name(f"{environment.name}.log"))
    started = time.monotonic()
    if present is not None and present == wanted(way):
        print("make install: refreshing the command regard", flush=True)
        installation.project()
    else:
        where = "requirements/lock.txt" if way == "lock" else "the package index"
        again = " (what was there is out of date or half made)" if environment.exists() else ""
        print(
            f"make install: {reason}, so packages come from {where}, into "
            f"{environment.name}{again}.\n  Some minutes, 4 GB; pip's own words are in "
            f"{installation.log.name}.",
            flush=True,
        )
        installation.create()
        installation.everything(way)
    temporary = stamp.with_suffix(".tmp")
    temporary.write_text(json.dumps(wanted(way), indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, stamp)
    print(f"make install: done in {time.monotonic() - started:.0f} s.", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nmake install: stopped; the next call starts it anew.")
